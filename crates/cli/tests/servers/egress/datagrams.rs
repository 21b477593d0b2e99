//! Goal: feedback reaches a caller that hears few responses, and no one without the key can send it.

use crate::egress::scene::{Egress, ScriptedNode, asks, ring, written};
use flashweir_feedback::KeyRing;
use flashweir_testkit::eventually;
use flashweir_tower::client::{HmacKey, Keys};
use std::net::{SocketAddr, UdpSocket};

struct Scene {
    node: ScriptedNode,
    egress: Egress,
    socket: UdpSocket,
    to: SocketAddr,
}

impl Scene {
    fn start() -> Self {
        let node = ScriptedNode::start();
        let target = "key_file = \"api.keys\"\nqueue = 0";
        let egress = Egress::start_with(&[node.upstream.url()], target, "udp = \"127.0.0.1:0\"");
        let to = egress.listening().address("udp");
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        Self { node, egress, socket, to }
    }

    /// Sends this until the sidecar has counted one more of its kind: datagrams may be lost, even here.
    fn send(&self, outcome: &str, datagram: &str) {
        let series = format!("flashweir_egress_datagrams_total{{outcome=\"{outcome}\"}}");
        let before = self.egress.metrics().value(&series);
        eventually(outcome, || {
            self.socket.send_to(datagram.as_bytes(), self.to).expect("loopback");
            (self.egress.metrics().value(&series) > before).then_some(())
        });
    }

    fn datagram(&self, sender: &str, sequence: u32, rate_rps: f64, ring: &KeyRing<HmacKey>) -> String {
        let address = self.node.upstream.address();
        let field = written(&asks(sequence, rate_rps), ring, &format!("{sender}>api@{address}"));
        format!("Flashweir-Overload/1 {sender} api {address}\n{field}\n")
    }
}

#[test]
fn a_signed_datagram_limits_and_releases() {
    let scene = Scene::start();
    scene.send("heard", &scene.datagram("shop", 1, 0.1, &ring()));
    scene.egress.until_condition("limited");
    let statuses = crate::egress::scene::statuses(&scene.egress, 4, "");
    assert_eq!(statuses, [200, 200, 503, 503], "no response carried it");
    let mut release = asks(2, 1.0);
    release.rate = None;
    let address = scene.node.upstream.address();
    let field = written(&release, &ring(), &format!("shop>api@{address}"));
    scene.send("heard", &format!("Flashweir-Overload/1 shop api {address}\n{field}\n"));
    scene.egress.until_condition("open");
}

#[test]
fn what_is_forged_or_for_others_is_dropped() {
    let scene = Scene::start();
    let guessed = Keys::parse("1 guessed-horse-battery-staple", "test").expect("a key").ring();
    scene.send("refused", &scene.datagram("shop", 1, 0.0, &guessed));
    scene.send("unknown", &scene.datagram("blog", 1, 0.0, &ring()));
    let untagged = written(&asks(1, 0.0), &KeyRing::<HmacKey>::empty(), "");
    let address = scene.node.upstream.address();
    scene.send("refused", &format!("Flashweir-Overload/1 shop api {address}\n{untagged}\n"));
    // Signed for another server of the same name.
    let of_other = written(&asks(1, 0.0), &ring(), "shop>api@127.0.0.1:1");
    scene.send("refused", &format!("Flashweir-Overload/1 shop api {address}\n{of_other}\n"));
    scene.send("unknown", &format!("Flashweir-Overload/1 shop api 127.0.0.1:1\n{of_other}\n"));
    scene.send("malformed", "rubbish");
    assert_eq!(scene.egress.node()["condition"], "open");
    assert_eq!(scene.egress.get().status(), 200);
}
