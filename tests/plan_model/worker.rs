//! The process in which worlds are made and requests resolved: one thread, a user id, and for root
//! a mount namespace of its own.

use std::fs;
use std::io;
use std::path::Path;

use dsh_sandbox::Host;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;

use crate::compare::differences;
use crate::disk::Disk;
use crate::generate::{self, Asked, Made};
use crate::model::{Model, Prediction, Refusal};
use crate::product;
use crate::running::Runner;
use crate::support::random::Random;
use crate::walk::Walker;
use crate::world::{Kind, OPEN};

/// What a worker is to do.
pub(crate) struct Order {
    pub(crate) seed: u64,
    pub(crate) first: u64,
    pub(crate) cases: u64,
    /// How many of the cases are also run.
    pub(crate) runs: u64,
    /// A directory of its own.
    pub(crate) directory: String,
    /// The programs to run.
    pub(crate) dsh_run: String,
    pub(crate) dsh_probe: String,
}

impl Order {
    /// The words from which [`Order::read`] makes the same.
    pub(crate) fn words(&self) -> Vec<String> {
        let numbers = [self.seed, self.first, self.cases, self.runs].map(|one| one.to_string());
        let texts = [&self.directory, &self.dsh_run, &self.dsh_probe].map(Clone::clone);
        numbers.into_iter().chain(texts).collect()
    }

    /// None where the words are others'.
    pub(crate) fn read(words: &[String]) -> Option<Self> {
        let [seed, first, cases, runs, directory, dsh_run, dsh_probe] = words else { return None };
        let number = |word: &String| word.parse().ok();
        Some(Self {
            seed: number(seed)?,
            first: number(first)?,
            cases: number(cases)?,
            runs: number(runs)?,
            directory: directory.clone(),
            dsh_run: dsh_run.clone(),
            dsh_probe: dsh_probe.clone(),
        })
    }
}

/// What came of the cases.
#[derive(Default)]
struct Tally {
    plans: u64,
    refusals: u64,
    hidden: u64,
    protected: u64,
    pinned: u64,
    missing: u64,
    runs: u64,
}

/// Does it; each difference is a line on standard output, and the last line is a summary.
pub(crate) fn work(order: &Order) -> io::Result<bool> {
    let is_root = geteuid().is_root();
    if is_root {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_PRIVATE | MsFlags::MS_REC, none)?;
    }
    fs::create_dir(format!("{}/elsewhere", order.directory))?;
    let host = Host::optimistic();
    let mut tally = Tally::default();
    let mut good = true;
    for number in order.first..order.first + order.cases {
        let found = one_case(order, number, &host, is_root, &mut tally)?;
        if !found.is_empty() {
            good = false;
            println!("seed {} case {number}:\n{}", order.seed, found.join("\n"));
        }
    }
    let Tally { plans, refusals, hidden, protected, pinned, missing, runs } = tally;
    println!(
        "{} cases: {plans} plans, {refusals} refusals; {hidden} hide, {protected} protect, \
         {pinned} pin, {missing} miss something; {runs} were run",
        order.cases
    );
    Ok(good)
}

fn one_case(
    order: &Order,
    number: u64,
    host: &Host,
    is_root: bool,
    tally: &mut Tally,
) -> io::Result<Vec<String>> {
    let walker = Walker { is_root };
    let mut random = Random::of_case(order.seed, number);
    let inner = |name: &str| format!("{}/{name}", order.directory);
    let mut made = generate::world(&mut random, &inner("tree"), is_root);
    let asked = generate::asked(&mut random, &made.world, walker, &inner("elsewhere"));
    let disk_world = made.clone();
    let disk = Disk::make(&disk_world, is_root)?;
    add_surroundings(&mut made, &asked);
    let (home, profile) = (inner("home"), inner("profile.toml"));
    let _ = fs::remove_file(&home);
    std::os::unix::fs::symlink(&asked.home, &home)?;
    product::write_profile(&asked, &profile)?;

    let world = &made.world;
    let model = Model { world, walker, asked: &asked, home, profile: profile.clone() };
    let predicted = model.predict();
    let mut found = match product::predict(world, &asked, &profile, host) {
        Ok(product) => differences(world, &product, &predicted),
        Err(error) => vec![format!("the product fails: {error}")],
    };
    count(tally, &predicted);
    if let (Ok(prediction), true, true) = (&predicted, tally.runs < order.runs, found.is_empty())
        && prediction.writable.iter().all(|root| Path::new(root).starts_with(inner("tree")))
    {
        tally.runs += 1;
        let runner = Runner { order, world, walker, asked: &asked, profile: &profile };
        found = runner.run(prediction)?;
    }
    std::env::set_current_dir("/")?;
    disk.remove()?;
    if !found.is_empty() {
        found.push(format!("{asked:#?}"));
        found.extend(
            world.places().into_iter().map(|place| {
                format!("{} {:?} {place:?}", world.path(place), world.kind(place.node))
            }),
        );
    }
    Ok(found)
}

/// What lies beside the tree: the link by which the home directory is known, the profile, and a
/// directory.
fn add_surroundings(made: &mut Made, asked: &Asked) {
    let beside = made.world.up(made.world.base()).node;
    made.world.add(beside, "home", Kind::Link(asked.home.clone()));
    made.world.add(beside, "profile.toml", Kind::File);
    made.world.add(beside, "elsewhere", OPEN);
}

fn count(tally: &mut Tally, predicted: &Result<Prediction, Refusal>) {
    match predicted {
        Err(_) => tally.refusals += 1,
        Ok(prediction) => {
            tally.plans += 1;
            tally.hidden += u64::from(!prediction.effects.hidden.is_empty());
            tally.protected += u64::from(!prediction.protected.is_empty());
            tally.pinned += u64::from(!prediction.effects.pinned.is_empty());
            tally.missing += u64::from(!prediction.missing.is_empty());
        }
    }
}
