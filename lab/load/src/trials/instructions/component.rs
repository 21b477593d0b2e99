//! Component to which a file or, without debug information, a function belongs.

use super::Place;

/// Crates of the workspace whose modules are components; every other crate is one component.
const BY_MODULE: [&str; 3] = ["gateway", "admission", "http"];
/// Beginnings of functions of the C library that move or compare memory.
const MEMORY: [&str; 8] =
    ["__memcpy", "__memmove", "__memset", "__memcmp", "__memchr", "memcpy", "memmove", "memset"];
/// Functions of its allocator.
const ALLOCATOR: [&str; 10] = [
    "malloc",
    "calloc",
    "realloc",
    "free",
    "posix_memalign",
    "cfree",
    "_int_malloc",
    "_int_free",
    "_int_realloc",
    "malloc_consolidate",
];
/// Path of a registry's folder, before its index, the crate and the version.
const REGISTRY: &str = "/registry/src/";

/// Name of the component by the file in which code was written: `flashweir-gateway/request`, `hyper`, `libc:
/// memory`, ...
#[must_use]
pub fn component(place: &Place) -> String {
    let Place { object, file, function } = place;
    if let Some(path) = after(file, "/crates/") {
        let mut parts = path.split('/');
        let name = parts.next().unwrap_or_default();
        let module = parts.nth(1).unwrap_or_default().trim_end_matches(".rs");
        return of_workspace(name, module);
    }
    if let Some(path) = after(file, REGISTRY) {
        return without_version(path.split('/').nth(1).unwrap_or_default()).to_owned();
    }
    if let Some(path) = after(file, "/library/") {
        return format!("std: {}", path.split('/').next().unwrap_or_default());
    }
    if let Some(path) = after(file, "/rust/deps/") {
        return without_version(path.split('/').next().unwrap_or_default()).to_owned();
    }
    if object.contains("/libc.so") || object.contains("/libc-") {
        return of_libc(file, function).to_owned();
    }
    of_function(function).unwrap_or_else(|| {
        let name = object.rsplit('/').next().unwrap_or_default();
        format!("{} (no source known)", name.split(".so").next().unwrap_or_default())
    })
}

/// The same by the function: what is inlined into it counts with it.
#[must_use]
pub fn component_of_function(place: &Place) -> String {
    let Place { object, file, function } = place;
    // The C library's allocator is known by its files alone.
    let file = if object.contains("/libc.so") { file.clone() } else { String::new() };
    component(&Place { object: object.clone(), file, function: function.clone() })
}

fn after<'a>(path: &'a str, part: &str) -> Option<&'a str> {
    path.split_once(part).map(|(_, rest)| rest)
}

fn of_workspace(name: &str, module: &str) -> String {
    match BY_MODULE.contains(&name) && !matches!(module, "" | "lib") {
        true => format!("flashweir-{name}/{module}"),
        false => format!("flashweir-{name}"),
    }
}

/// `hyper-1.12.0` without the version.
fn without_version(folder: &str) -> &str {
    let is_version = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    let at = folder.match_indices('-').find(|(at, _)| is_version(&folder[at + 1..]));
    at.map_or(folder, |(at, _)| &folder[..at])
}

fn of_libc(file: &str, function: &str) -> &'static str {
    if MEMORY.iter().any(|name| function.starts_with(name)) {
        "libc: memory"
    } else if file.contains("/malloc/") || ALLOCATOR.contains(&function) {
        "libc: allocator"
    } else {
        "libc: rest"
    }
}

/// By the crate in which a function of Rust is, as `<flashweir_http::guarded::Guarded<Io> as ...>::poll_read`
/// is in `http/guarded`.
fn of_function(function: &str) -> Option<String> {
    let path = function.trim_start_matches(['<', '&', '[', '(', '*', '_']);
    if path.starts_with("ring_core") {
        return Some("ring".to_owned());
    }
    let (name, rest) = path.split_once("::")?;
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name(name) {
        return None;
    }
    let module = rest.split("::").next().filter(|module| is_name(module)).unwrap_or_default();
    Some(match (name.strip_prefix("flashweir_"), name) {
        (Some(name), _) => of_workspace(name, module),
        (None, "core" | "alloc" | "std" | "std_detect") => format!("std: {name}"),
        (None, name) => name.replace('_', "-"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(object: &str, file: &str, function: &str) -> String {
        let [object, file, function] = [object, file, function].map(str::to_owned);
        component(&Place { object, file, function })
    }

    #[test]
    fn components_follow_from_files() {
        let of = |file| of("/usr/bin/flashweir", file, "a::b");
        assert_eq!(of("/src/crates/gateway/src/request/received.rs"), "flashweir-gateway/request");
        assert_eq!(of("/src/crates/http/src/serve.rs"), "flashweir-http/serve");
        assert_eq!(of("/src/crates/classify/src/signs.rs"), "flashweir-classify");
        assert_eq!(of("/cargo/registry/src/index-1949/hyper-util-0.1.21/src/rt.rs"), "hyper-util");
        assert_eq!(of("/rustc/0123/library/core/src/ptr/mod.rs"), "std: core");
        assert_eq!(of("/rust/deps/hashbrown-0.16.1/src/raw.rs"), "hashbrown");
    }

    #[test]
    fn components_of_the_c_library_follow_from_functions() {
        let of = |file, function| of("/lib/libc.so.6", file, function);
        assert_eq!(of("", "__memcpy_avx_unaligned_erms"), "libc: memory");
        assert_eq!(of("./malloc/./malloc/malloc.c", "tcache_get"), "libc: allocator");
        assert_eq!(of("", "free"), "libc: allocator");
        assert_eq!(of("", "epoll_wait"), "libc: rest");
    }

    #[test]
    fn components_without_files_follow_from_names() {
        let of = |function| of("/usr/sbin/nginx", "", function);
        assert_eq!(
            of("<flashweir_http::guarded::Guarded<Io> as tokio::io::AsyncRead>::poll_read"),
            "flashweir-http/guarded"
        );
        assert_eq!(of("flashweir_classify::Classifier::classify"), "flashweir-classify");
        assert_eq!(of("core::ptr::drop_in_place<flashweir_http::serve::Server>"), "std: core");
        assert_eq!(of("hyper_util::rt::tokio::TokioIo<T>::new"), "hyper-util");
        assert_eq!(of("ring_core_0_17_14__x25519"), "ring");
        assert_eq!(of("ngx_http_proxy_handler"), "nginx (no source known)");
    }
}
