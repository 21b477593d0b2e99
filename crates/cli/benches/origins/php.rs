//! PHP-FPM behind nginx.

use crate::application::{Application, Directory};
use flashweir_testkit::Php;

/// Each has one request at a time.
const WORKERS: u32 = 8;
const PAGE: &str = include_str!("applications/page.php");

pub(super) fn start() -> Result<Application, String> {
    let directory = Directory::new();
    let page = PAGE.strip_prefix("<?php").unwrap_or(PAGE);
    let page = format!("$marks = '{}';\n{page}", directory.marks().display());
    let php = Php::require("php", WORKERS, &page).ok_or("`php-fpm` or `nginx` is missing")?;
    Ok(Application::of_php(php, WORKERS as usize, directory, Vec::new()))
}
