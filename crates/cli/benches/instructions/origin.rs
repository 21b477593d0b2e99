//! An origin on threads of this process: one fixed answer to every request.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, SystemTime};

/// Time before an answer: longer than the gateway takes from its request to its first attempt to read, even
/// under valgrind. It so waits for every answer, and not by chance.
const THINKS_FOR: Duration = Duration::from_millis(1);
/// Lines of a request's head at most.
const HEAD_LINES_MAX: usize = 100;

/// Starts an origin that answers with a body of `answer_bytes`; it takes connections until this process ends.
pub(crate) fn start(answer_bytes: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
    let address = listener.local_addr().expect("a bound listener");
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            std::thread::spawn(move || {
                // Ends with its connection.
                let _ = serve(stream, answer_bytes);
            });
        }
    });
    address
}

fn serve(stream: TcpStream, answer_bytes: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let date = httpdate::fmt_http_date(SystemTime::now());
    let head = format!(
        "HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: text/html\r\nCache-Control: max-age=3600\r\n\
         Content-Length: {answer_bytes}\r\n\r\n"
    );
    let answer = [head.into_bytes(), vec![b'x'; answer_bytes]].concat();
    let mut reader = BufReader::new(stream);
    while read_request(&mut reader)? {
        std::thread::park_timeout(THINKS_FOR);
        reader.get_mut().write_all(&answer)?;
    }
    Ok(())
}

/// Reads one request; false at the connection's end.
fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<bool> {
    let mut body_bytes = 0;
    for _ in 0..HEAD_LINES_MAX {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            io::copy(&mut reader.by_ref().take(body_bytes), &mut io::sink())?;
            return Ok(true);
        }
        if let Some(length) = line.strip_prefix("content-length:") {
            body_bytes = length.trim().parse().map_err(io::Error::other)?;
        }
    }
    Err(io::Error::other("a head of too many lines"))
}
