//! Goal: the commands of docs/slow-requests.md can be typed, and pages and long requests are answered.
//! Method: one shell in a fresh directory, with the ports replaced by free ones.
//!
//! No twin in virtual time of the tests under load: what is tested is that the page can be typed.

use crate::docs::blocks::blocks_of_document;
use crate::docs::load::run;
use flashweir_testkit::reserve_address;

const WAIT: &str = "wait_for() { for _ in $(seq 600); do (: < /dev/tcp/127.0.0.1/${1##*:}) 2> /dev/null && break; sleep 0.05; done; }\n";

#[test]
#[ignore = "real load: make test-load"]
fn the_page_of_slow_requests_can_be_typed_from_top_to_bottom_under_load() {
    let directory = tempfile::tempdir().expect("a fresh directory");
    let blocks = blocks_of_document("docs/slow-requests.md");
    let blocks: Vec<_> = blocks.iter().filter(|block| block.language == "sh").collect();
    let [origin, gateway, admin] = [(); 3].map(|()| reserve_address().to_string());
    let mut script = format!("{WAIT}trap 'kill $(jobs -p)' EXIT\n");
    for block in blocks {
        script += &format!("{}\necho \"line {}: exit $?\"\n", block.text.trim_end(), block.line);
        if block.text.contains("flashweir run") {
            script += &format!("wait_for {origin}; wait_for {gateway}\n");
        }
    }
    let script = script
        .replace("flashweir origin", &format!("flashweir origin --listen {origin}"))
        .replace(
            "flashweir run",
            &format!("flashweir run --state-file state.json --listen {gateway} --admin {admin}"),
        )
        .replace("flashweir load", "flashweir load --json")
        .replace("127.0.0.1:3000", &origin)
        .replace("127.0.0.1:8080", &gateway);
    let output = run(&script, directory.path());
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let all = format!("{said}\n{complained}");
    let exits: Vec<&str> = said.lines().filter(|line| line.starts_with("line ")).collect();
    assert_eq!(exits.len(), 2, "{all}");
    assert!(exits.iter().all(|line| line.ends_with("exit 0")), "{all}");
    let json = said.find('{').zip(said.rfind('}')).map(|(from, to)| &said[from..=to]);
    let result: serde_json::Value = serde_json::from_str(json.unwrap_or_default()).expect("a result");
    for class in ["pages", "polls"] {
        let count = |name: &str| result["classes"][class][name].as_u64().unwrap_or_default();
        assert!(count("offered") > 30 && count("completed") > 0, "{class}: {all}");
        // Beside other tests under load pages of 5 ms may take hundreds: the service is not calm then, and
        // some are refused.
        assert!(count("refused") < count("offered"), "{class}: {all}");
    }
}
