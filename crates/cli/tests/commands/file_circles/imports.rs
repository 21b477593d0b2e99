//! Names that the files of a crate take from each other, read from their sources.
//!
//! A name counts where it is used, not where it is re-exported: `crate::a::Thing` leads to the file that
//! defines `Thing`. Modules of tests are left out. A glob takes all names of a module and leads to its own
//! file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Item, UseTree};

/// Re-exports that lead to one another: more are none.
const REEXPORTS_MAX: usize = 16;

/// Segments of a path from the crate's root.
type ModulePath = Vec<String>;

/// Names that one file takes from another.
pub(super) type Imports = BTreeMap<(PathBuf, PathBuf), BTreeSet<String>>;

/// A module, in a separate file or within that of its parent.
#[derive(Default)]
struct Module {
    file: PathBuf,
    children: BTreeSet<String>,
    /// Local names of its `use` items, as the paths are written.
    names: BTreeMap<String, ModulePath>,
    /// Paths in its code, as they are written.
    paths: Vec<ModulePath>,
}

/// Modules of one crate.
struct Sources {
    modules: BTreeMap<ModulePath, Module>,
}

/// Names that the files below a crate's root file take from each other.
///
/// # Panics
///
/// If a source cannot be read or parsed.
pub(super) fn imports(root: &Path) -> Imports {
    let mut sources = Sources { modules: BTreeMap::new() };
    sources.read(root, root.parent().expect("a folder"), ModulePath::new());
    sources.imports()
}

impl Sources {
    fn read(&mut self, file: &Path, children: &Path, path: ModulePath) {
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        self.take(parsed.items, file, children, path);
    }

    fn take(&mut self, items: Vec<Item>, file: &Path, folder: &Path, path: ModulePath) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items {
            match item {
                Item::Mod(child) if is_of_tests(&child.attrs) || is_stand_in(&child.attrs) => {}
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let (below, inside) = (with(&path, &name), folder.join(&name));
                    match child.content {
                        Some((_, items)) => self.take(items, file, &inside, below),
                        None => {
                            let (file, inside) = located(&child.attrs, file, folder, &name);
                            self.read(&file, &inside, below);
                        }
                    }
                    module.children.insert(name);
                }
                Item::Use(item) if is_of_tests(&item.attrs) => {}
                Item::Use(item) => {
                    leaves(&item.tree, &mut Vec::new(), &mut module);
                }
                other => {
                    if !has_test_attribute(&other) {
                        collect_paths(other.to_token_stream(), &mut module.paths);
                    }
                }
            }
        }
        self.modules.insert(path, module);
    }

    fn imports(&self) -> Imports {
        let mut found = Imports::new();
        for (at, module) in &self.modules {
            for path in &module.paths {
                let Some((target, name)) = self.definition(at, path, 0) else { continue };
                let file = &self.modules[&target].file;
                if *file != module.file {
                    found.entry((module.file.clone(), file.clone())).or_default().insert(name);
                }
            }
        }
        found
    }

    /// The module that defines what a path within module `at` leads to, and its name there; `None` for a
    /// module as such, and for names of other crates and of the language.
    fn definition(&self, at: &[String], path: &[String], depth: usize) -> Option<(ModulePath, String)> {
        let (first, rest) = path.split_first()?;
        let module = &self.modules[at];
        let start = match first.as_str() {
            "crate" => ModulePath::new(),
            "self" => at.to_vec(),
            "super" => at.split_last()?.1.to_vec(),
            name if module.children.contains(name) => with(at, name),
            name => {
                let written = module.names.get(name)?;
                if depth == REEXPORTS_MAX || written[..] == path[..] {
                    return None;
                }
                let whole: Vec<String> = written.iter().chain(rest).cloned().collect();
                return self.definition(at, &whole, depth + 1);
            }
        };
        self.below(start, rest, depth)
    }

    fn below(&self, mut at: ModulePath, rest: &[String], depth: usize) -> Option<(ModulePath, String)> {
        let (name, further) = rest.split_first()?;
        if name == "super" {
            at.pop();
            return self.below(at, further, depth);
        }
        let module = &self.modules[&at];
        if module.children.contains(name) && !further.is_empty() {
            return self.below(with(&at, name), further, depth);
        }
        if module.names.contains_key(name) && depth < REEXPORTS_MAX {
            return self.definition(&at, rest, depth + 1);
        }
        let is_module = module.children.contains(name);
        (!is_module).then(|| (at, name.clone()))
    }
}

/// The file of a module, and the folder of those below it.
fn located(attributes: &[Attribute], parent: &Path, folder: &Path, name: &str) -> (PathBuf, PathBuf) {
    let given = attributes.iter().find(|attribute| attribute.path().is_ident("path")).map(|attribute| {
        let text = attribute.meta.to_token_stream().to_string();
        text.split('"').nth(1).expect("a path in quotes").to_owned()
    });
    if let Some(given) = given {
        let file = parent.parent().expect("a folder").join(given);
        let inside = file.parent().expect("a folder").to_owned();
        return (file, inside);
    }
    let (flat, inside) = (folder.join(format!("{name}.rs")), folder.join(name));
    let file = if flat.exists() { flat } else { inside.join("mod.rs") };
    (file, inside)
}

fn with(path: &[String], name: &str) -> ModulePath {
    path.iter().cloned().chain([name.to_owned()]).collect()
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    has_condition(attributes, |names| names.contains("test") && !names.contains("not"))
}

/// Returns true for what takes the place of a part that is built with a feature alone: the part itself is
/// read.
fn is_stand_in(attributes: &[Attribute]) -> bool {
    has_condition(attributes, |names| names.contains("feature") && names.contains("not"))
}

fn has_condition(attributes: &[Attribute], is_met: impl Fn(&BTreeSet<String>) -> bool) -> bool {
    let conditions = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    conditions.into_iter().any(|condition| {
        let mut paths = Vec::new();
        collect_paths(condition.meta.to_token_stream(), &mut paths);
        is_met(&paths.into_iter().flatten().collect())
    })
}

fn has_test_attribute(item: &Item) -> bool {
    let attributes = match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        _ => return false,
    };
    is_of_tests(attributes)
}

/// Local names of a `use` item. What a glob takes is not known by name: it counts as a use of the module's
/// own file.
fn leaves(tree: &UseTree, path: &mut ModulePath, module: &mut Module) {
    match tree {
        UseTree::Path(tree) => {
            path.push(tree.ident.to_string());
            leaves(&tree.tree, path, module);
            path.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            if let Some(last) = path.last().cloned() {
                module.names.insert(last, path.clone());
            }
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            let whole = with(path, &name);
            module.names.insert(name, whole);
        }
        UseTree::Rename(rename) => {
            let mut whole = path.clone();
            if rename.ident != "self" {
                whole.push(rename.ident.to_string());
            }
            module.names.insert(rename.rename.to_string(), whole);
        }
        UseTree::Glob(_) => module.paths.push(with(path, "*")),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, path, module)),
    }
}

/// Adds each run of names that `::` joins.
fn collect_paths(tokens: TokenStream, paths: &mut Vec<ModulePath>) {
    let (mut path, mut colons) = (ModulePath::new(), 0);
    for token in tokens {
        match token {
            TokenTree::Ident(name) if colons == 2 && !path.is_empty() => {
                path.push(name.to_string());
                colons = 0;
            }
            TokenTree::Ident(name) => {
                paths.extend((!path.is_empty()).then(|| std::mem::take(&mut path)));
                path = vec![name.to_string()];
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => colons += 1,
            other => {
                paths.extend((!path.is_empty()).then(|| std::mem::take(&mut path)));
                colons = 0;
                if let TokenTree::Group(group) = other {
                    collect_paths(group.stream(), paths);
                }
            }
        }
    }
    paths.extend((!path.is_empty()).then_some(path));
}
