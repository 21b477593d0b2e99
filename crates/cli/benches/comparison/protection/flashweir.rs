//! Flashweir: as it is, and with a rule for gold.

use super::{Place, Standing};
use flashweir_testkit::{Flashweir, reserve_address};
use std::net::SocketAddr;

pub(crate) const ABOUT_CLASSES: &str =
    "three classes by the field `x-class`, of revenue 9, 3 and 1; all else as it is.";

pub(super) fn start(binary: &Flashweir, origin: SocketAddr) -> Result<Standing, String> {
    let place = Place::new();
    let (upstream, listen, admin) =
        (format!("http://{origin}"), place.address.to_string(), reserve_address().to_string());
    let places = ["--listen", &listen, "--admin", &admin, "--state-file", "baseline.json"];
    let process = binary.start(place.path(), ["run", "--upstream", &upstream].iter().chain(&places));
    place.standing(process)
}

pub(super) fn start_with_classes(binary: &Flashweir, origin: SocketAddr) -> Result<Standing, String> {
    let place = Place::new();
    let class = |name: &str, revenue: u32| {
        format!(
            "[[class]]\nname = \"{name}\"\nrevenue = {revenue}\nmatch = {{ header = \"x-class: {name}\" }}\n"
        )
    };
    let config = format!(
        "listen.address = \"{}\"\nadmin.address = \"{}\"\nstate.file = \"baseline.json\"\n\
         upstream.urls = [\"http://{origin}\"]\n{}{}{}",
        place.address,
        reserve_address(),
        class("gold", 9),
        class("silver", 3),
        class("bronze", 1)
    );
    place.write("flashweir.toml", &config);
    let process = binary.start(place.path(), ["run", "--config", "flashweir.toml"]);
    place.standing(process)
}
