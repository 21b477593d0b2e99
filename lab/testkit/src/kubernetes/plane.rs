//! etcd, API server, controller manager and scheduler, gone when dropped.

use std::ffi::OsString;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::api::KubernetesApi;
use crate::deadline::until;
use crate::ports::reserve_address;
use crate::process::{Process, Signal};
use crate::programs::skip;

/// The API server takes 4 s on an idle machine.
const STARTS_WITHIN: Duration = Duration::from_secs(120);
/// The user who may do everything.
const ADMINISTRATOR: &str = "administrator";

/// A running control plane.
#[derive(Debug)]
pub struct ControlPlane {
    binary: PathBuf,
    directory: TempDir,
    address: SocketAddr,
    etcd: String,
    authority: String,
    api_server: Option<Process>,
    others: Vec<Process>,
}

impl ControlPlane {
    /// Starts one, or `None` after a loud line that says what `test` lacks. `tools` is where `make testplane`
    /// puts the binary; `users` may log in by tokens of their own names and have no rights but those that a
    /// test gives them. To be called inside a namespace of the network in which the addresses of `pods` are
    /// the namespace's own.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn require(test: &str, tools: &Path, users: &[&str]) -> Option<Self> {
        Self::require_with(test, tools, users, &[])
    }

    /// As [`ControlPlane::require`], with further options of the controller manager; of one that is there
    /// twice the last counts.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn require_with(test: &str, tools: &Path, users: &[&str], controllers: &[&str]) -> Option<Self> {
        let binary = tools.join("testplane");
        if !binary.exists() {
            skip(
                test,
                "there is no Kubernetes control plane: `make testplane CLUSTER_TESTS=1` builds it from Go modules",
            );
            return None;
        }
        Some(Self::start(binary, users, controllers))
    }

    fn start(binary: PathBuf, users: &[&str], controllers: &[&str]) -> Self {
        let directory = TempDir::new().expect("a fresh directory");
        let (address, etcd_client, etcd_peer) = (reserve_address(), reserve_address(), reserve_address());
        let authority = write_files(directory.path(), users);
        let mut plane = Self {
            binary,
            directory,
            address,
            etcd: format!("http://{etcd_client}"),
            authority,
            api_server: None,
            others: Vec::new(),
        };
        let etcd = plane.etcd.clone();
        plane.begin(
            "etcd",
            &[
                "--data-dir=etcd".to_owned(),
                "--unsafe-no-fsync".to_owned(),
                format!("--listen-client-urls={etcd}"),
                format!("--advertise-client-urls={etcd}"),
                format!("--listen-peer-urls=http://{etcd_peer}"),
                "--log-level=warn".to_owned(),
            ],
        );
        until("etcd", STARTS_WITHIN, || TcpStream::connect(etcd_client).ok());
        plane.start_api_server();
        let login = plane.kubeconfig(ADMINISTRATOR).display().to_string();
        let common = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"]
            .map(|it| format!("--{it}={login}"));
        // Their own limits make them slow; a test of a few pods must not wait for that.
        let quick = [
            "--leader-elect=false",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            "--bind-address=127.0.0.1",
        ];
        let port = || format!("--secure-port={}", reserve_address().port());
        let options = |more: &[&str]| {
            let given = quick.iter().chain(more).map(|it| (*it).to_owned());
            common.iter().cloned().chain(given).chain([port()]).collect::<Vec<_>>()
        };
        let of_controllers = [
            "--service-account-private-key-file=accounts.key",
            "--horizontal-pod-autoscaler-sync-period=1s",
            "--cert-dir=controllers",
        ];
        let controllers = options(&[of_controllers.as_slice(), controllers].concat());
        plane.begin("kube-controller-manager", &controllers);
        let scheduler = options(&["--cert-dir=scheduler"]);
        plane.begin("kube-scheduler", &scheduler);
        until("the namespace `default`", STARTS_WITHIN, || {
            (plane.administrator().get("/api/v1/namespaces/default").status == 200).then_some(())
        });
        plane
    }

    fn begin(&mut self, component: &str, arguments: &[String]) {
        let process = self.process(component, arguments);
        self.others.push(process);
    }

    fn process(&self, component: &str, arguments: &[String]) -> Process {
        let arguments =
            [component.to_owned()].into_iter().chain(arguments.iter().cloned()).map(OsString::from);
        Process::start(&self.binary, self.directory.path(), arguments)
    }

    /// Starts the API server, at first or after [`ControlPlane::kill_api_server`].
    ///
    /// # Panics
    /// When it does not get ready.
    pub fn start_api_server(&mut self) {
        let arguments = [
            format!("--etcd-servers={}", self.etcd),
            format!("--secure-port={}", self.address.port()),
            "--bind-address=127.0.0.1".to_owned(),
            // The address that pods get for it must not be one of loopback; no pod of these tests asks.
            "--advertise-address=10.244.255.1".to_owned(),
            "--tls-cert-file=server.pem".to_owned(),
            "--tls-private-key-file=server.key".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            "--service-account-key-file=accounts.pub".to_owned(),
            "--service-account-signing-key-file=accounts.key".to_owned(),
            "--token-auth-file=tokens.csv".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            // To other API servers by their pods' addresses: there is no proxy for those of Services.
            "--enable-aggregator-routing=true".to_owned(),
            // No pod of these tests has an account.
            "--disable-admission-plugins=ServiceAccount".to_owned(),
        ];
        let process = self.process("kube-apiserver", &arguments);
        let mut process = process;
        let api = self.administrator();
        until("the API server", STARTS_WITHIN, || {
            assert!(process.ended().is_none(), "the API server ended at its start: {}", process.stderr());
            let answer = api.try_call("GET", "/readyz", None).ok()?;
            (answer.status == 200).then_some(())
        });
        self.api_server = Some(process);
    }

    /// Ends the API server without a farewell.
    pub fn kill_api_server(&mut self) {
        // A process is killed when it is dropped.
        self.api_server = None;
    }

    /// Stands the API server still, or lets it go on.
    ///
    /// # Panics
    /// When it does not run.
    pub fn signal_api_server(&self, signal: Signal) {
        self.api_server.as_ref().expect("an API server").signal(signal);
    }

    /// One who may do everything.
    #[must_use]
    pub fn administrator(&self) -> KubernetesApi {
        self.user(ADMINISTRATOR)
    }

    /// A user by name.
    #[must_use]
    pub fn user(&self, name: &str) -> KubernetesApi {
        KubernetesApi::new(self.address, name, &self.authority)
    }

    /// The file by which programs log in as a user.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.login().write(user, user)
    }

    pub(super) fn login(&self) -> Login {
        Login { directory: self.directory.path().to_owned(), address: self.address }
    }
}

/// Credentials with which programs log in.
#[derive(Clone, Debug)]
pub(super) struct Login {
    directory: PathBuf,
    address: SocketAddr,
}

impl Login {
    /// A file by which a program logs in with this token; `name` distinguishes it from others.
    pub(super) fn write(&self, name: &str, token: &str) -> PathBuf {
        let file = self.directory.join(format!("{name}.kubeconfig"));
        // YAML may be JSON.
        let config: Value = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{ "name": "it", "cluster": {
                "server": format!("https://{}", self.address),
                "certificate-authority": self.directory.join("authority.pem"),
            }}],
            "users": [{ "name": "it", "user": { "token": token } }],
            "contexts": [{ "name": "it", "context": { "cluster": "it", "user": "it", "namespace": "default" } }],
        });
        fs::write(&file, config.to_string()).expect("a writable directory");
        file
    }
}

/// Keys, certificates and tokens; the authority's certificate.
fn write_files(directory: &Path, users: &[&str]) -> String {
    let write = |name: &str, text: &str| fs::write(directory.join(name), text).expect("a writable directory");
    let accounts = KeyPair::generate().expect("a key");
    write("accounts.key", &accounts.serialize_pem());
    write("accounts.pub", &accounts.public_key_pem());
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned(), Ipv4Addr::LOCALHOST.to_string()];
    let certificate =
        CertificateParams::new(names).expect("good names").self_signed(&key).expect("a certificate");
    write("server.key", &key.serialize_pem());
    write("server.pem", &certificate.pem());
    write("authority.pem", &certificate.pem());
    let tokens = users.iter().map(|user| format!("{user},{user},{user}\n"));
    let administrator = format!("{ADMINISTRATOR},{ADMINISTRATOR},{ADMINISTRATOR},system:masters\n");
    write("tokens.csv", &tokens.chain([administrator]).collect::<String>());
    certificate.pem()
}
