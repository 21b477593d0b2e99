//! A wire between a gateway and its leader that a test can cut.

use flashweir_testkit::reserve_address;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Passes connections on until it is cut.
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    pub(crate) fn start(to: SocketAddr) -> Self {
        let address = reserve_address();
        let listener = TcpListener::bind(address).expect("a free port");
        let (is_cut, streams) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<TcpStream>>>::default());
        let (cut, kept) = (is_cut.clone(), streams.clone());
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(other) = TcpStream::connect(to) else { continue };
                let ends = [&stream, &other].map(|end| end.try_clone().expect("a second handle"));
                kept.lock().expect("no panic").extend(ends);
                pass(stream, other);
            }
        });
        Self { address, is_cut, streams }
    }

    /// Nothing passes any more.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        for stream in self.streams.lock().expect("no panic").drain(..) {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// New connections pass again.
    pub(crate) fn mend(&self) {
        self.is_cut.store(false, Ordering::SeqCst);
    }
}

fn pass(one: TcpStream, other: TcpStream) {
    let (Ok(mut one_in), Ok(mut other_in)) = (one.try_clone(), other.try_clone()) else { return };
    let (mut one_out, mut other_out) = (one, other);
    thread::spawn(move || {
        let _ = io::copy(&mut one_in, &mut other_out);
        let _ = other_out.shutdown(Shutdown::Both);
    });
    thread::spawn(move || {
        let _ = io::copy(&mut other_in, &mut one_out);
        let _ = one_out.shutdown(Shutdown::Both);
    });
}
