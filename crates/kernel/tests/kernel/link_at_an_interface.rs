//! The classifier and the observer at one interface: responses that the classifier cuts are not measured.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use flashweir_kernel::link::{FlowKey, LinkClassifier, LinkOrders, Side};
use flashweir_kernel::observe::{Observer, Reading};
use flashweir_testkit::{PATIENCE, Testbed, skip};

const RESPONSE_BYTES: usize = 200_000;

fn exchange(testbed: &Testbed, listener: &TcpListener) {
    let server = listener.local_addr().expect("an address");
    let connect = || TcpStream::connect_timeout(&server, PATIENCE);
    let mut client = testbed.inside("client", connect).expect("a connection");
    let (mut serving, _) = listener.accept().expect("the connection");
    client.set_read_timeout(Some(PATIENCE)).expect("a time limit");
    let sender =
        std::thread::spawn(move || serving.write_all(&vec![b'x'; RESPONSE_BYTES]).expect("a reader"));
    let mut response = Vec::new();
    client.read_to_end(&mut response).expect("a response");
    assert_eq!(response.len(), RESPONSE_BYTES);
    sender.join().expect("no panic");
}

/// Goal: NEWS does not take a response that Purge slows down for a server in trouble (ALGORITHMS §6,
/// insight 3). Method: the same exchange before and after its flow is cut, by a probability so small that
/// nothing is lost; the observer is attached first.
#[test]
fn responses_that_are_cut_are_left_out_of_what_is_observed() {
    let test = "an observer behind a classifier";
    let mut classifier = match LinkClassifier::load(FlowKey::Source) {
        Ok(classifier) => classifier,
        Err(error) if error.is_unavailable() => return skip(test, &error.to_string()),
        Err(error) => panic!("{error}"),
    };
    let Some(mut testbed) = Testbed::require(test, &["client", "server"]) else { return };
    let [_, server] = testbed.link("client", "server");
    let listener = testbed.inside("server", || TcpListener::bind((server, 0))).expect("an address");
    let mut observer = Observer::load_behind_link(4_096, Reading::Corrected).expect("as the classifier");
    observer.watch(&[listener.local_addr().expect("an address")]).expect("an address");
    let _observing = testbed.inside("server", || observer.attach("client")).expect("an interface");
    let attached =
        testbed.inside("server", || classifier.attach("client", Side::Egress)).expect("an interface");
    assert!(attached.is_there());
    classifier.apply(LinkOrders::default()).expect("orders");

    exchange(&testbed, &listener);
    let observed = observer.read().expect("a reading");
    assert_eq!((observed.offered, observed.rates[1].responses()), (1, 1));
    let reading = classifier.read().expect("a reading");
    assert!(reading.counts.offered_bytes > RESPONSE_BYTES as u64, "{:?}", reading.counts);
    let (flow, _) = reading.flows.iter().copied().max_by_key(|(_, bytes)| *bytes).expect("the server");

    classifier.apply(LinkOrders { mark: 0, cuts: &[(flow, 1)] }).expect("orders");
    exchange(&testbed, &listener);
    let observed = observer.read().expect("a reading");
    assert_eq!((observed.offered, observed.rates[1].responses()), (1, 0));

    // Released, it counts again.
    classifier.apply(LinkOrders::default()).expect("orders");
    exchange(&testbed, &listener);
    assert_eq!(observer.read().expect("a reading").rates[1].responses(), 1);
}
