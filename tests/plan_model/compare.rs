//! Where two predictions differ.

use std::fmt::Debug;

use crate::model::{Prediction, Refusal};
use crate::world::World;

/// One line for each difference of the product from the model.
pub(crate) fn differences(
    world: &World,
    product: &Result<Prediction, Refusal>,
    model: &Result<Prediction, Refusal>,
) -> Vec<String> {
    let mut found = Vec::new();
    match (product, model) {
        (Ok(product), Ok(model)) => {
            let mut equal = |what: &str, product: &dyn Debug, model: &dyn Debug| {
                let (product, model) = (format!("{product:?}"), format!("{model:?}"));
                if product != model {
                    found.push(format!("{what}: the product has {product}, the model {model}"));
                }
            };
            equal("workspace", &product.workspace, &model.workspace);
            equal("writable roots", &product.writable, &model.writable);
            equal("hidden", &product.hidden, &model.hidden);
            equal("protected", &product.protected, &model.protected);
            equal("missing", &product.missing, &model.missing);
            let (product, model) = (&product.effects, &model.effects);
            for place in world.places() {
                let path = world.path(place);
                let hidden = [product, model].map(|one| one.hidden.contains(&place));
                equal(&format!("{path} hidden"), &hidden[0], &hidden[1]);
                let writable = [product, model].map(|one| one.writable.contains(&place));
                equal(&format!("{path} writable"), &writable[0], &writable[1]);
                // Elsewhere nothing can be moved anyway.
                let movable = model.writable.contains(&world.up(place))
                    && !hidden[1]
                    && !world.is_mount(place)
                    && place != world.base();
                let pinned = [product, model].map(|one| one.pinned.contains(&place.node));
                if movable {
                    equal(&format!("{path} pinned"), &pinned[0], &pinned[1]);
                }
            }
        }
        (Err(product), Err(model)) if product == model => {}
        (product, model) => {
            let text = |one: &Result<Prediction, Refusal>| match one {
                Ok(_) => "a plan".to_owned(),
                Err(refusal) => format!("{refusal:?}"),
            };
            found.push(format!("the product has {}, the model {}", text(product), text(model)));
        }
    }
    found
}
