//! Cost of finding a request's service, class and keys: `cargo bench -p flashweir-classify`.

use criterion::{Criterion, criterion_group, criterion_main};
use flashweir_classify::Classifier;
use flashweir_config::Config;
use flashweir_core::Hasher64;
use http::{Request, request};
use std::hint::black_box;
use std::net::IpAddr;

/// One rule of each kind but API keys, none of which holds for [`head`]: the request is asked about
/// everything.
const CLASSES: &str = "
[[class]]
name = 'checkout'
match = { path = ['/checkout/', '/pay/*/confirm'], method = ['POST', 'PUT'] }
[[class]]
name = 'api'
match.host = '*.api.shop.example'
[[class]]
name = 'gold'
match.header = 'x-plan: gold*'
fair_by = { header = 'x-plan' }
[[class]]
name = 'signed_in'
match.cookie = 'session'
[[class]]
name = 'office'
match.client = ['10.0.0.0/8', '172.16.0.0/12', 'fd00::/8']
[[class]]
name = 'export'
match.path = '*/export/*.csv'
[[class]]
name = 'crawlers'
match.header = ['user-agent: *bot*', 'user-agent: *crawl*']
";

const SERVICE: &str = "
[[service]]
name = 'other'
hosts = ['other.example', '*.other.example']
upstream.urls = ['http://b']
";

fn head(path: &str) -> request::Parts {
    let request = Request::get(path)
        .header("host", "www.shop.example")
        .header("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
        .header("accept", "text/html,application/xhtml+xml")
        .header("accept-language", "en-GB,en;q=0.5")
        .header("accept-encoding", "gzip, deflate, br")
        .header("cookie", "consent=yes; theme=dark; basket=6e0d2a4c");
    request.body(()).expect("a request").into_parts().0
}

fn classify(criterion: &mut Criterion) {
    let client: IpAddr = "198.51.100.7".parse().expect("an address");
    for (name, more, path) in [
        ("one class", String::new(), "/products/1234?from=search"),
        ("8 classes", CLASSES.to_owned(), "/products/1234?from=search"),
        ("8 classes, 2 services", format!("{CLASSES}{SERVICE}"), "/products/1234?from=search"),
        ("8 classes, 2 services, odd path", format!("{CLASSES}{SERVICE}"), "//products/./%31234?from=search"),
    ] {
        let toml = format!("upstream.urls = ['http://a']\n{more}");
        let config = Config::from_toml(&toml, "bench.toml").expect("a valid configuration");
        let classifier = Classifier::new(Hasher64::new(1, 2), Hasher64::new(3, 4), &config);
        let head = head(path);
        criterion.bench_function(name, |bencher| {
            bencher.iter(|| classifier.classify(black_box(&head), client, None))
        });
    }
}

criterion_group!(benches, classify);
criterion_main!(benches);
