//! Sockets of a service manager, and messages to it (`sd_listen_fds(3)`, `sd_notify(3)`).

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flashweir_testkit::{Client, PATIENCE, Upstream, eventually};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A service manager: it has the socket for clients, and starts gateways that inherit it.
struct Manager {
    socket: TcpListener,
    messages: UnixDatagram,
    directory: TempDir,
}

/// A gateway under the manager, killed when dropped.
struct Service(Child);

impl Manager {
    fn new() -> Self {
        let directory = TempDir::new().expect("a fresh directory");
        let messages = UnixDatagram::bind(directory.path().join("notify")).expect("a socket");
        messages.set_read_timeout(Some(PATIENCE)).expect("a time above zero");
        Self { socket: TcpListener::bind("127.0.0.1:0").expect("bind"), messages, directory }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().expect("an address")
    }

    fn notify_socket(&self) -> PathBuf {
        self.directory.path().join("notify")
    }

    /// Starts a gateway that inherits `socket` as descriptor 3. A shell does what a manager does between
    /// fork and exec: it moves the descriptor and says whose it is.
    fn spawn(&self, socket: OwnedFd, upstream: &Upstream) -> Service {
        const AS_A_MANAGER: &str =
            "exec 3<&0 </dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\"";
        let url = upstream.url();
        let arguments = ["run", "--admin", "127.0.0.1:0", "--workers", "2", "--upstream", &url];
        let child = Command::new("/bin/sh")
            .args(["-c", AS_A_MANAGER, env!("CARGO_BIN_EXE_flashweir")])
            .args(arguments)
            // In use already: it is not to be bound.
            .args(["--listen", &self.address().to_string()])
            .env("NOTIFY_SOCKET", self.notify_socket())
            .env("STATE_DIRECTORY", self.directory.path())
            .current_dir(self.directory.path())
            .stdin(Stdio::from(socket))
            .stderr(Stdio::piped())
            .spawn();
        Service(child.expect("a shell"))
    }

    fn start(&self, upstream: &Upstream) -> Service {
        let service = self.spawn(self.socket.try_clone().expect("a descriptor").into(), upstream);
        assert_eq!(self.message(), "READY=1\n");
        service
    }

    fn message(&self) -> String {
        let mut buffer = [0; 256];
        let length = self.messages.recv(&mut buffer).expect("a message in time");
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

impl Service {
    fn terminate(&self) {
        let id = Pid::from_raw(self.0.id().cast_signed()).expect("a positive id");
        kill_process(id, Signal::TERM).expect("a living process");
    }

    fn ended(&mut self) -> ExitStatus {
        eventually("the end of the gateway", || self.0.try_wait().expect("a child"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Method: clients that connect for each request while the gateway is restarted three times.
#[test]
fn no_connection_is_dropped_while_the_service_restarts() {
    let manager = Manager::new();
    let upstream = Upstream::saying("served");
    let mut service = manager.start(&upstream);
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    let response = Client::get(manager.address(), "/");
                    assert_eq!((response.status(), response.text().as_str()), (200, "served"));
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let some_more = || {
            let before = answered.load(Ordering::SeqCst);
            eventually("answers", || (answered.load(Ordering::SeqCst) > before + 100).then_some(()));
        };
        for _ in 0..3 {
            some_more();
            service.terminate();
            assert_eq!(manager.message(), "STOPPING=1\n");
            assert!(service.ended().success());
            service = manager.start(&upstream);
        }
        some_more();
        is_over.store(true, Ordering::SeqCst);
    });
    assert_eq!(answered.load(Ordering::SeqCst), upstream.request_count());
}

/// A connection that comes while no gateway runs is answered by the next one.
#[test]
fn a_connection_waits_for_the_service() {
    let manager = Manager::new();
    let upstream = Upstream::saying("served");
    let mut client = Client::connect(manager.address());
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    let _service = manager.start(&upstream);
    assert_eq!(client.response().status(), 200);
}

#[test]
fn a_descriptor_that_does_not_listen_is_an_error_at_start() {
    let manager = Manager::new();
    let upstream = Upstream::saying("served");
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("bind");
    let mut service = manager.spawn(datagrams.into(), &upstream);
    assert_eq!(service.ended().code(), Some(64));
    let said = std::io::read_to_string(service.0.stderr.take().expect("a pipe")).expect("text");
    assert!(said.contains("descriptor 3 of the service manager is no listening TCP socket"), "{said}");
}
