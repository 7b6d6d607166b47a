//! Links the unwinder into the program: one shared library less to load each time it is executed,
//! which is twice per command.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
}
