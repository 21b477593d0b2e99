//! A candidate policy: what it becomes, what it takes over from the policy in force, and the one message for
//! each mistake.

use crate::{Candidate, Config, Overrides, Policing};

const LIVE: &str = "upstream.urls = ['http://10.0.0.5:3000']\n\
                    [sentry]\nresponse_target = '2s'\n\
                    [[class]]\nname = 'gold'\nmatch.header = 'x-plan: gold'\nrevenue = 10\n";

fn candidate(text: &str) -> Candidate {
    let text = format!("{LIVE}{text}");
    let config = Config::from_toml(&text, "shop.toml").unwrap_or_else(|error| panic!("{error} in {text}"));
    config.services[0].candidate.clone().expect("a candidate")
}

fn names(candidate: &Candidate) -> Vec<&str> {
    candidate.classes.iter().map(|class| class.name.as_str()).collect()
}

/// `expected` is everything after the file's name; the candidate begins in line 8.
fn refused(text: &str, expected: &str) {
    let text = format!("{LIVE}{text}");
    let message = Config::from_toml(&text, "shop.toml").expect_err(&text).to_string();
    assert_eq!(message, format!("shop.toml:{expected}"), "for: {text}");
}

#[test]
fn without_a_word_there_is_none() {
    assert_eq!(Config::from_toml(LIVE, "shop.toml").unwrap().services[0].candidate, None);
}

#[test]
fn what_it_leaves_out_is_as_in_the_policy_in_force() {
    let classes = candidate("[[candidate.class]]\nname = 'silver'\nmatch.path = '/silver/'\n");
    assert_eq!(names(&classes), ["silver", "default"]);
    assert_eq!(classes.sentry.response_target.as_secs(), 2);
    let target = candidate("[candidate]\nsentry.response_target = '500ms'\n");
    assert_eq!(names(&target), ["gold", "default"]);
    assert_eq!((target.sentry.response_target.as_millis(), target.classes[0].revenue), (500, 10.0));
    // A policy in force that only watches is no reason for the candidate to.
    let shadow = Overrides { shadow: true, ..Overrides::default() };
    let text = format!("{LIVE}[candidate]\nsentry.policing = 'reservation'\n");
    let service = Config::from_toml_with(&text, "shop.toml", &shadow).unwrap().services.swap_remove(0);
    let sentry = service.candidate.expect("a candidate").sentry;
    assert_eq!((service.sentry.shadow, sentry.shadow, sentry.policing), (true, false, Policing::Reservation));
    assert_eq!(sentry.response_target.as_secs(), 1, "of a table that is written nothing is taken over");
}

#[test]
fn a_service_has_its_own() {
    let text = format!(
        "{LIVE}[[service]]\nname = 'api'\nhosts = 'api.example'\nupstream.urls = ['http://b']\n\
         [[service.candidate.class]]\nname = 'paying'\nmatch.header = 'x-key'\n"
    );
    let services = Config::from_toml(&text, "shop.toml").unwrap().services;
    assert_eq!(services[0].candidate, None);
    assert_eq!(names(services[1].candidate.as_ref().unwrap()), ["paying", "default"]);
}

#[test]
fn what_is_wrong_names_line_and_key() {
    for (text, expected) in [
        ("[candidate]\n", "8: candidate: is the policy in force, expected `sentry` or `class`"),
        ("[candidate]\nfile = 'x'\n", "9: candidate.file: unknown key `file`, expected `sentry` or `class`"),
        (
            "[candidate]\nsentry.shadow = true\n",
            "9: candidate.sentry.shadow: has no use in a candidate, which never refuses a request",
        ),
        (
            "[candidate]\nsentry.policing = 'off'\n",
            "9: candidate.sentry.policing: a candidate that is \"off\" lets everybody in, expected a way to decide",
        ),
        (
            "[candidate.sentry]\nresponse_target = '1ms'\n",
            "9: candidate.sentry.response_target: 1ms is out of range, expected 10ms to 1m",
        ),
        (
            "[[candidate.class]]\nname = 'a'\n[[candidate.class]]\nname = 'b'\nrevenue = 0\n",
            "12: candidate.class[1].revenue: 0 is out of range, expected 0.001 to 1000000",
        ),
        (
            "[[candidate.class]]\nname = 'a'\n[[candidate.class]]\nname = 'b'\nmatch.path = '/'\n",
            "10: candidate.class[1]: `b` can never match: class[0] `a` comes first and has no rules and takes every \
             request, expected the special before the general",
        ),
        (
            "[[service]]\nname = 'api'\nhosts = 'b'\nupstream.urls = ['http://b']\n\
             [[service.candidate.class]]\nname = 'a'\nqueue = -1\n",
            "14: service[0].candidate.class[0].queue: invalid value: integer `-1`, expected u32",
        ),
    ] {
        refused(text, expected);
    }
    let off = "upstream.urls = ['http://a']\nsentry.policing = 'off'\n[[candidate.class]]\nname = 'a'\n";
    let message = Config::from_toml(off, "shop.toml").unwrap_err().to_string();
    assert!(message.starts_with("shop.toml:3: candidate: cannot be evaluated where"), "{message}");
}

#[test]
fn its_key_files_are_read_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.toml");
    let text = format!(
        "{LIVE}[[candidate.class]]\nname = 'keys'\nmatch.api_keys = {{ header = 'x-api-key', file = 'new.keys' }}\n"
    );
    std::fs::write(&path, text).unwrap();
    let load = || Config::load(Some(&path), &Overrides::default());
    let message = load().unwrap_err().to_string();
    let place = format!("{}:10: candidate.class[0].match.api_keys.file: ", path.display());
    assert!(message.starts_with(&place), "{message}");
    std::fs::write(directory.path().join("new.keys"), "k-1\n").unwrap();
    let candidate = load().unwrap().services.swap_remove(0).candidate.unwrap();
    assert!(candidate.classes[0].rules.api_keys.as_ref().unwrap().contains(b"k-1"));
}
