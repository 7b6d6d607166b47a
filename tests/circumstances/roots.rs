//! Several writable roots: inside one another, by links, below the places of which the sandbox has
//! its own.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::for_each_user;
use crate::place::{Fate, Place, READ_ONLY};
use crate::support::caller::Caller;
use crate::support::cases::Case;
use crate::support::problems::Problems;
use crate::workspaces::scratch;

pub(crate) fn cases() -> Vec<Case> {
    let kinds = KINDS.iter().flat_map(|&(name, make)| {
        for_each_user(&format!("roots::{name}"), move |caller| {
            let mut problems = Problems::default();
            make(caller)?.check(caller, &mut problems)?;
            problems.verdict(&name)
        })
    });
    kinds.collect()
}

type Make = fn(&Caller) -> io::Result<Place>;

const KINDS: &[(&str, Make)] = &[
    ("a-root-around-the-workspace", |caller| {
        make_all(caller, &["around", "around/workspace", "around/beside"])?;
        let workspace = caller.path("around/workspace");
        Ok(Place::at(&workspace)
            .called_from(workspace, ["--writable", ".."])
            .and("../beside", READ_ONLY, Fate::Kept)
            .and("../..", READ_ONLY, READ_ONLY))
    }),
    ("a-root-in-the-workspace", |caller| {
        make_all(caller, &["workspace/a", "workspace/a/b"])?;
        let options = ["--writable", "a/b", "--writable", "a", "--writable", "a/b"];
        Ok(Place::at(caller.workspace())
            .called_from(caller.workspace(), options)
            .and("a", READ_ONLY, Fate::Kept)
            .and("a/b", READ_ONLY, Fate::Kept))
    }),
    ("every-second-of-a-chain", |caller| {
        make_all(caller, &["a", "a/b", "a/b/c", "a/b/c/d"])?;
        let options = ["--writable", "../a/b/c/d", "--writable", "../a/b"];
        Ok(Place::at(caller.workspace())
            .called_from(caller.workspace(), options)
            .and("../a", READ_ONLY, READ_ONLY)
            .and("../a/b", READ_ONLY, Fate::Kept)
            .and("../a/b/c", READ_ONLY, Fate::Kept)
            .and("../a/b/c/d", READ_ONLY, Fate::Kept))
    }),
    ("names-that-begin-alike", |caller| {
        make_all(caller, &["workspace.old", "workspace2", "works"])?;
        Ok(Place::at(caller.workspace())
            .called_from(caller.workspace(), ["--writable", "../workspace2"])
            .and("../workspace2", READ_ONLY, Fate::Kept)
            .and("../workspace.old", READ_ONLY, READ_ONLY)
            .and("../works", READ_ONLY, READ_ONLY))
    }),
    ("the-same-by-links", |caller| {
        make_all(caller, &["real"])?;
        symlink("real", caller.path("one"))?;
        symlink("one", caller.path("two"))?;
        symlink("./real/../two", caller.path("three"))?;
        let options = ["--writable", "../two", "--writable", "../three", "--writable", "../real/."];
        Ok(Place::at(caller.workspace())
            .called_from(caller.workspace(), options)
            .and("../three", READ_ONLY, Fate::Kept)
            .and("../one", READ_ONLY, Fate::Kept)
            .and("../two", READ_ONLY, Fate::Kept))
    }),
    ("below-tmp-and-dev-shm", |caller| {
        // Beside each other and inside one another in the same scratch.
        let (tmp, shm) = (scratch(caller, "/tmp")?, scratch(caller, "/dev/shm")?);
        let mut options: Vec<String> = Vec::new();
        let mut place = Place::at(caller.workspace());
        for base in [tmp.path(), shm.path()] {
            for below in ["a", "a/b", "a/b/c", "d", "d/e"] {
                let directory = base.join(below);
                fs::create_dir(&directory)?;
                caller.persona().own(&directory)?;
            }
            for root in ["a/b/c", "a/b", "d/e"] {
                options.extend(["--writable".to_owned(), shown(&base.join(root))]);
                place = place.and(base.join(root), NOT_SHOWN, Fate::Kept);
            }
            for between in ["", "a", "d"] {
                place = place.and(base.join(between), NOT_SHOWN, READ_ONLY);
            }
        }
        Ok(place.called_from(caller.workspace(), options).keep(tmp).keep(shm))
    }),
];

/// In read-only no root is writable, so nothing below the scratch is shown.
const NOT_SHOWN: Fate = crate::place::MISSING;

fn make_all(caller: &Caller, names: &[&str]) -> io::Result<()> {
    names.iter().try_for_each(|name| caller.make_dir(name).map(drop))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
