use super::*;

const RIGHT: &str = r#"
name = "shop"
admin = "127.0.0.1:9910"
[[listen]]
address = "127.0.0.1:8100"
target = "api"
rank = 2
[[listen]]
address = "127.0.0.1:8101"
[ranks]
field = "x-class"
values = { checkout = 0, search = 5 }
priority = true
[[target]]
name = "api"
urls = ["http://127.0.0.1:9001", "https://api.internal"]
[[target]]
name = "blog"
node = "blog-node"
urls = ["http://blog.internal:80"]
hosts = ["Blog.Example"]
queue = 4
wait_ms = 100
deadline_ms = 2000
hedge_after_ms = 40
retry = { ratio = 0.2, attempts = 3, statuses = [502, 503] }
"#;

#[test]
fn a_right_file_is_taken() {
    let config = Config::parse(RIGHT).unwrap();
    assert_eq!(
        config.listeners.iter().map(|it| (it.target, it.rank)).collect::<Vec<_>>(),
        [(Some(0), 2), (None, 15)]
    );
    assert_eq!((config.ranks.values["checkout"], config.ranks.priority), (0, true));
    let [api, blog] = &config.targets[..] else { panic!("two targets") };
    assert_eq!((api.node.as_str(), api.attempts_max, api.budget), ("api", 2, BudgetSettings::default()));
    assert_eq!(api.endpoint, EndpointSettings::default());
    assert_eq!((blog.node.as_str(), blog.hosts[0].as_str()), ("blog-node", "blog.example"));
    assert_eq!((blog.endpoint.gapping.queue_max, blog.budget.ratio), (4, 0.2));
    assert_eq!((blog.deadline.as_millis(), blog.hedge_after.map(|it| it.as_millis())), (2_000, Some(40)));
}

#[test]
fn a_wrong_file_says_what_is_expected() {
    let check = |from: &str, to: &str, expected: &str| {
        assert!(RIGHT.contains(from), "{from}");
        let error = Config::parse(&RIGHT.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error.lines().next(), Some(expected));
    };
    check("rank = 2", "rnak = 2", "TOML parse error at line 7, column 1");
    check("rank = 2", "rank = 16", "listen 127.0.0.1:8100: rank: expected 0 to 15 (is 16)");
    check("target = \"api\"", "target = \"apo\"", "listen 127.0.0.1:8100: there is no target `apo`");
    check(
        "name = \"shop\"",
        "name = \"a>b\"",
        "name is `a>b`: expected 1 to 63 letters, digits, `-`, `_` or `.`",
    );
    check("name = \"blog\"", "name = \"api\"", "target.api: there are two of this name");
    check(
        "hosts = [\"Blog.Example\"]",
        "",
        "listen 127.0.0.1:8101: expected `target`, because no target has `hosts`",
    );
    check("field = \"x-class\"", "", "ranks.values: expected ranks.field, too");
    check("search = 5", "search = 99", "ranks.values.search: expected 0 to 15 (is 99)");
    check(
        "[[listen]]",
        "udp = \"127.0.0.1:9911\"\n[[listen]]",
        "udp: expected target.key_file, because datagrams without a tag are not believed",
    );
    check("ratio = 0.2", "ratio = 2.0", "target.blog.retry.ratio is 2: expected 0 to 1");
    check(
        "statuses = [502, 503]",
        "statuses = [200]",
        "target.blog.retry.statuses: expected statuses from 400 to 599",
    );
    check("attempts = 3", "attempts = 0", "target.blog.retry.attempts: expected 1 to 5 (is 0)");
    check("deadline_ms = 2000", "deadline_ms = 0", "target.blog.deadline_ms: expected 1 to 86400000 (is 0)");
    check("[\"http://blog.internal:80\"]", "[]", "target.blog.urls: expected 1 to 64 (is 0)");
}

#[test]
fn files_that_are_named_are_checked_and_relative_to_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("egress.toml");
    let load = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Config::load(&path).map_err(|error| (error.is_configuration(), error.to_string()))
    };
    let with_keys = RIGHT.replace("hosts = [", "key_file = \"blog.keys\"\nhosts = [");
    let (is_configuration, error) = load(&with_keys).unwrap_err();
    assert!(is_configuration && error.contains("blog.keys"), "{error}");
    std::fs::write(directory.path().join("blog.keys"), "1 correct horse battery staple\n").unwrap();
    let config = load(&with_keys).unwrap();
    assert!(!config.targets[1].keys().unwrap().is_empty() && config.targets[0].keys().unwrap().is_empty());
    let (is_configuration, error) = load(&RIGHT.replace("http://blog", "ftp://blog")).unwrap_err();
    assert!(is_configuration, "{error}");
    assert!(
        error.ends_with(
            "target.blog: upstream address `ftp://blog.internal:80/` must begin with http:// or https://"
        ),
        "{error}"
    );
}
