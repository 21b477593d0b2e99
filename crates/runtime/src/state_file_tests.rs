//! Every way a state file can be wrong, in its own directory.

use super::*;
use proptest::prelude::*;
use tempfile::TempDir;

fn baseline() -> Baseline {
    Baseline {
        unique_offered_rps: Some(120.5),
        fast_rate_bytes_per_s: None,
        fast_score: Some(1.0 / 3.0),
        latency_by_class_s: vec![(9, 0.004), (14, 0.1 + 0.2)],
    }
}

fn file_in(folder: &TempDir) -> StateFile {
    let path = folder.path().join("deep").join("baseline.json");
    StateFile::new(path, "shop", &["http://b/".to_owned(), "http://a/".to_owned()])
}

fn saved_text(folder: &TempDir) -> String {
    let file = file_in(folder);
    file.save(&baseline()).expect("save");
    fs::read_to_string(file.path()).expect("read")
}

#[test]
fn what_was_saved_comes_back_bit_for_bit_whatever_the_order_of_upstreams() {
    let folder = TempDir::new().expect("folder");
    assert!(file_in(&folder).load().expect("no file is fine").is_none());
    saved_text(&folder);
    let path = file_in(&folder).path().to_owned();
    let other_order = StateFile::new(path, "shop", &["http://a/".to_owned(), "http://b/".to_owned()]);
    assert_eq!(other_order.load().expect("load"), Some(baseline()));
    let left = fs::read_dir(folder.path().join("deep")).expect("list").count();
    assert_eq!(left, 1, "no temporary file is left behind");
}

#[test]
fn another_service_other_upstreams_or_another_version_is_not_believed() {
    let folder = TempDir::new().expect("folder");
    let text = saved_text(&folder);
    let path = file_in(&folder).path().to_owned();
    let elsewhere = StateFile::new(path.clone(), "shop", &["http://c/".to_owned()]);
    assert!(matches!(elsewhere.load(), Err(StateFileError::OtherService)));
    fs::write(&path, text.replace("\"version\": 2", "\"version\": 3")).expect("write");
    assert!(matches!(file_in(&folder).load(), Err(StateFileError::OtherVersion(3))));
}

#[test]
fn implausible_numbers_are_not_believed() {
    let folder = TempDir::new().expect("folder");
    let text = saved_text(&folder);
    fs::write(file_in(&folder).path(), text.replace("120.5", "-1")).expect("write");
    assert!(matches!(file_in(&folder).load(), Err(StateFileError::Implausible)));
}

#[test]
fn an_oversized_file_is_not_read_to_its_end() {
    let folder = TempDir::new().expect("folder");
    saved_text(&folder);
    fs::write(file_in(&folder).path(), vec![b' '; BYTES_MAX as usize + 1]).expect("write");
    assert!(matches!(file_in(&folder).load(), Err(StateFileError::TooLarge)));
}

#[test]
fn a_path_that_cannot_be_written_is_an_error_and_leaves_nothing() {
    let folder = TempDir::new().expect("folder");
    fs::write(folder.path().join("deep"), "a file where a folder should be").expect("write");
    assert!(matches!(file_in(&folder).save(&baseline()), Err(StateFileError::Write(_))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// However much of a file is there, loading gives the baseline or an error, never something in between.
    #[test]
    fn a_truncated_file_is_damaged(cut in 0.0f64..1.0) {
        let folder = TempDir::new().expect("folder");
        let text = saved_text(&folder);
        let keep = (text.trim_end().len() as f64 * cut) as usize;
        fs::write(file_in(&folder).path(), &text[..keep]).expect("write");
        prop_assert!(matches!(file_in(&folder).load(), Err(StateFileError::Damaged(_))));
        file_in(&folder).save(&baseline()).expect("rewritten");
        prop_assert_eq!(file_in(&folder).load().expect("load"), Some(baseline()));
    }
}

#[test]
fn the_key_of_url_classes_is_kept_with_what_was_learned_of_them() {
    let folder = TempDir::new().expect("folder");
    saved_text(&folder);
    assert_eq!(file_in(&folder).saved_url_key(), None);
    let key = (u64::MAX, 7);
    file_in(&folder).with_url_key(key).save(&baseline()).expect("save");
    assert_eq!(file_in(&folder).saved_url_key(), Some(key));
    assert_eq!(file_in(&folder).load().expect("load"), Some(baseline()));
}

#[test]
fn what_a_crash_left_of_a_write_is_removed_unless_its_writer_lives() {
    let folder = TempDir::new().expect("folder");
    saved_text(&folder);
    let path = file_in(&folder).path().to_owned();
    let beside = |end: &str| path.with_file_name(format!("baseline.json.{end}"));
    // No process has a number so high; process 1 lives as long as the machine.
    let (dead, alive, other) = (beside("4294967294.tmp"), beside("1.tmp"), beside("notes.tmp"));
    for file in [&dead, &alive, &other] {
        fs::write(file, "half").expect("write");
    }
    assert_eq!(file_in(&folder).load_or_begin_anew(), baseline());
    assert_eq!([&dead, &alive, &other].map(|file| file.exists()), [false, true, true]);
}
