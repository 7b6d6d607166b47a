//! The part of JSON Schema that `dsh-run schema` uses, checked by hand: a whole validator would be
//! the largest dependency of the workspace.

use serde_json::Value;

/// What in `value` does not follow `schema`, a member of `root`.
pub(crate) fn violations(root: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut found = Vec::new();
    let Some(schema) = schema.as_object() else { return found };
    for (keyword, rule) in schema {
        match keyword.as_str() {
            "$ref" => {
                match rule.as_str().and_then(|name| root.pointer(name.trim_start_matches('#'))) {
                    Some(target) => found.extend(violations(root, target, value, at)),
                    None => found.push(format!("{at}: {rule} leads nowhere")),
                }
            }
            "type" if !has_type(rule, value) => found.push(format!("{at}: {value} is no {rule}")),
            "const" if rule != value => found.push(format!("{at}: {value} is not {rule}")),
            "enum" if !list(rule).contains(value) => {
                found.push(format!("{at}: {value} is none of {rule}"));
            }
            "required" => {
                let missing = list(rule).iter().filter_map(Value::as_str);
                let missing = missing.filter(|name| value.is_object() && value.get(name).is_none());
                found.extend(missing.map(|name| format!("{at}: lacks {name}")));
            }
            "properties" => {
                for (name, rule) in rule.as_object().into_iter().flatten() {
                    if let Some(member) = value.get(name) {
                        found.extend(violations(root, rule, member, &format!("{at}/{name}")));
                    }
                }
            }
            "items" => {
                for (index, item) in list(value).iter().enumerate() {
                    found.extend(violations(root, rule, item, &format!("{at}/{index}")));
                }
            }
            "minimum" if value.as_f64() < rule.as_f64() => {
                found.push(format!("{at}: {value} is below {rule}"));
            }
            "anyOf" | "oneOf" => {
                let matching =
                    list(rule).iter().filter(|one| violations(root, one, value, at).is_empty());
                let count = matching.count();
                if count == 0 || (keyword == "oneOf" && count > 1) {
                    found.push(format!("{at}: {value} matches {count} of {rule}"));
                }
            }
            _ if !KNOWN.contains(&keyword.as_str()) => {
                found.push(format!("{at}: this check does not know the keyword {keyword}"));
            }
            _ => {}
        }
    }
    found
}

/// Keywords with a rule above, and those that say nothing about values.
const KNOWN: [&str; 16] = [
    "$defs",
    "$ref",
    "$schema",
    "anyOf",
    "const",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "minimum",
    "oneOf",
    "properties",
    "required",
    "title",
    "type",
];

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn has_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    };
    match rule {
        Value::String(name) => is(name),
        _ => list(rule).iter().filter_map(Value::as_str).any(is),
    }
}
