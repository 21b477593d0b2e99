//! Servers that refuse everything with a 503, on the first processor.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;

use flashweir_testkit::{Process, Testbed, eventually};

use crate::arena::{CLIENT, SERVER, pin};

/// One of them.
pub(crate) struct Server {
    pub(crate) process: Process,
    _directory: tempfile::TempDir,
    _held: Vec<TcpStream>,
}

impl Server {
    /// `return 503` of nginx.
    pub(crate) fn nginx(testbed: &Testbed, program: &Path, at: SocketAddr) -> Self {
        let directory = tempfile::TempDir::new().expect("a fresh directory");
        let root = directory.path();
        let config = format!(
            "daemon off; master_process off; worker_processes 1; pid {0}/pid; error_log {0}/errors;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f;\n\
             uwsgi_temp_path {0}/u; scgi_temp_path {0}/s; server {{ listen {at} backlog=4096; return 503; }} }}\n",
            root.display()
        );
        std::fs::write(root.join("nginx.conf"), config).expect("a writable directory");
        let arguments = ["-p".as_ref(), root.as_os_str(), "-c".as_ref(), "nginx.conf".as_ref()];
        let process = testbed.inside(SERVER, || Process::start(program, root, arguments));
        connect(testbed, at);
        pin(process.id(), 0);
        Self { process, _directory: directory, _held: Vec::new() }
    }

    /// The gateway. The one request that it may have in flight is held by an upstream that never answers.
    pub(crate) fn gateway(testbed: &Testbed, program: &Path, at: SocketAddr) -> Self {
        let directory = tempfile::TempDir::new().expect("a fresh directory");
        let root = directory.path();
        let silent = testbed.inside(SERVER, || TcpListener::bind((at.ip(), 0))).expect("an address");
        let upstream = silent.local_addr().expect("an address");
        let admin = SocketAddr::new(at.ip(), at.port() + 1);
        let config = format!(
            "[gateway]\nworkers = 1\n[listen]\naddress = \"{at}\"\n[admin]\naddress = \"{admin}\"\n\
             [upstream]\nurls = [\"http://{upstream}\"]\nresponse_header_timeout = \"10m\"\n\
             [bounds]\nmax_requests_in_flight = 1\n"
        );
        std::fs::write(root.join("gateway.toml"), config).expect("a writable directory");
        // All of its threads are on the first processor.
        let arguments =
            ["-c".as_ref(), "0".as_ref(), program.as_os_str(), "run".as_ref(), "--config".as_ref()];
        let arguments = arguments.into_iter().chain(["gateway.toml".as_ref()]);
        let process = testbed.inside(SERVER, || Process::start(Path::new("taskset"), root, arguments));
        let mut client = connect(testbed, at);
        client.write_all(b"GET / HTTP/1.1\r\nHost: held\r\n\r\n").expect("a request");
        let (mut held, _) = silent.accept().expect("the held request");
        held.read_exact(&mut [0; 1]).expect("its first byte");
        Self { process, _directory: directory, _held: vec![client, held] }
    }
}

fn connect(testbed: &Testbed, at: SocketAddr) -> TcpStream {
    testbed.inside(CLIENT, || eventually("a server that listens", || TcpStream::connect(at).ok()))
}
