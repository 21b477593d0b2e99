//! Goal: every shell block of docs/replay.md does what it says, typed one after the other. Method: one shell
//! in a fresh directory, with the ports replaced by free ones; what each block prints is looked at, and a
//! recording cut in two is replayed.
//!
//! No twin in virtual time of the tests under load: what is tested is that the manual can be typed.

use crate::docs::blocks::blocks_of_document;
use crate::docs::load::run;
use flashweir_testkit::reserve_address;

const WAIT: &str = "wait_for() { for _ in $(seq 600); do (: < /dev/tcp/127.0.0.1/${1##*:}) 2> /dev/null && break; sleep 0.05; done; }\n";

#[test]
#[ignore = "real load: make test-load"]
fn the_manual_of_replay_can_be_typed_from_top_to_bottom_under_load() {
    let directory = tempfile::tempdir().expect("a fresh directory");
    let blocks = blocks_of_document("docs/replay.md");
    let blocks: Vec<_> = blocks.iter().filter(|block| block.language == "sh").collect();
    let [origin, gateway, admin] = [(); 3].map(|()| reserve_address().to_string());
    let mut script = format!("set -m\n{WAIT}trap 'kill $(jobs -p)' EXIT\n");
    for block in blocks {
        let text = block.text.replace("--record", &format!("--listen {gateway} --admin {admin} --record"));
        script += &format!("{}\necho \"line {}: exit $?\"\n", text.trim_end(), block.line);
        if block.text.contains("--record") {
            script += &format!("wait_for {origin}; wait_for {gateway}\n");
        }
    }
    script += "head -c 20000 crowd.rec > half.rec; flashweir replay half.rec; echo \"half: exit $?\"\n";
    script += "echo no recording > other.rec; flashweir replay other.rec; echo \"other: exit $?\"\n";
    let script = script.replace("flashweir origin", &format!("flashweir origin --listen {origin}"));
    let script = script.replace("127.0.0.1:3000", &origin).replace("127.0.0.1:8080", &gateway);
    let output = run(&script, directory.path());
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let all = format!("{said}\n{complained}");
    let same = said.lines().find(|line| line.starts_with("all ")).unwrap_or_else(|| panic!("{all}"));
    assert!(same.contains(" plans of 2 planners over ") && same.contains("the same, bit for bit"), "{all}");
    assert!(said.lines().any(|line| line.contains("would be others under patient.toml")), "{all}");
    assert!(said.contains("half.rec: the recording ends within the frame at byte"), "{all}");
    assert!(said.contains("half: exit 0") && said.contains("other: exit 1"), "{all}");
    assert!(complained.contains("other.rec: this is no recording: it does not begin with FWREC"), "{all}");
    assert!(
        said.lines().filter(|line| line.starts_with("line ")).all(|line| line.ends_with("exit 0")),
        "{all}"
    );
}
