//! The client of a case that speaks HTTP/1: steps on one connection at a time, each within a time.

use crate::case::Step;
use crate::observation::Event;
use flashweir_testkit::{Client, Message, ReadError};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Time for a response. Longer than the second after which a proxy may send 100 by itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// Interim responses before a final one; more end the reading.
const INTERIM_MAX: usize = 16;

/// Time for the origin to close its connections.
const CLOSE_WITHIN: Duration = Duration::from_secs(1);

/// Time for the proxy to notice that a connection is closed.
const NOTICE: Duration = Duration::from_millis(10);

/// Plays the steps against a proxy and records what happens; `is_idle` answers whether the origin has no
/// connection open.
pub(crate) fn play(address: SocketAddr, steps: &[Step], is_idle: impl Fn() -> bool) -> Vec<Event> {
    let mut session = Session { address, client: None, is_leaving: false, owed: 0, events: Vec::new() };
    for step in steps {
        match step {
            Step::OriginCloses => wait_until(&is_idle),
            step => session.step(step),
        }
    }
    session.events
}

fn wait_until(is_idle: &impl Fn() -> bool) {
    let began = Instant::now();
    while !is_idle() && began.elapsed() < CLOSE_WITHIN {
        std::thread::park_timeout(Duration::from_millis(1));
    }
    std::thread::park_timeout(NOTICE);
}

struct Session {
    address: SocketAddr,
    client: Option<Client>,
    /// The last response said that the connection ends.
    is_leaving: bool,
    /// Requests whose final response is to come.
    owed: usize,
    events: Vec<Event>,
}

impl Session {
    fn step(&mut self, step: &Step) {
        match step {
            Step::Send(bytes) => {
                if self.is_leaving || (self.owed == 0 && self.client.as_ref().is_some_and(Client::is_closed))
                {
                    self.leave();
                }
                self.owed += 1;
                self.send(bytes);
            }
            Step::SendUnlessAnswered(bytes) if self.owed > 0 => self.send(bytes),
            Step::Within(time) => self.within(*time),
            Step::Final => self.read_final(Client::try_response),
            Step::FinalToHead => self.read_final(Client::response_to_head),
            Step::HalfClose => {
                if let Some(client) = &mut self.client {
                    client.finish_writing();
                }
            }
            Step::End(time) => self.wait_for_end(*time),
            Step::Leave => self.leave(),
            Step::SendUnlessAnswered(_) | Step::OriginCloses => {}
        }
    }

    fn leave(&mut self) {
        (self.client, self.is_leaving, self.owed) = (None, false, 0);
    }

    fn send(&mut self, bytes: &[u8]) {
        if self.client.is_none() {
            let Ok(mut client) = Client::try_connect(self.address) else {
                return self.fail(Event::Reset);
            };
            client.set_patience(PATIENCE);
            self.client = Some(client);
        }
        // A proxy that has answered and closed may refuse the rest of a request; its answer is read all the
        // same.
        let _ = self.client.as_mut().map(|client| client.try_send(bytes));
    }

    fn within(&mut self, time: Duration) {
        if self.owed == 0 {
            return;
        }
        if let Some(client) = &mut self.client {
            client.set_patience(time);
        }
        self.read_one(Client::try_response);
        if let Some(client) = &mut self.client {
            client.set_patience(PATIENCE);
        }
    }

    fn read_final(&mut self, read: Read) {
        for _ in 0..=INTERIM_MAX {
            if self.owed == 0 || !matches!(self.read_one(read), Some(100..=199)) {
                return;
            }
        }
    }

    /// Reads one response; its status.
    fn read_one(&mut self, read: Read) -> Option<u16> {
        let result = read(self.client.as_mut()?);
        match result {
            Ok(response) => {
                let status = response.status();
                if status >= 200 || status == 101 {
                    self.owed -= 1;
                    self.is_leaving = says_close(&response);
                }
                self.events.push(Event::Response(response));
                Some(status)
            }
            Err(error) => {
                match event_of(&error) {
                    // A response that does not come in time may still come.
                    Event::Silence => self.events.push(Event::Silence),
                    event => self.fail(event),
                }
                None
            }
        }
    }

    fn wait_for_end(&mut self, time: Duration) {
        let Some(client) = &mut self.client else { return };
        client.set_patience(time);
        let event = match client.read_some(1) {
            Ok(bytes) if bytes.is_empty() => Event::Closed,
            Ok(_) => Event::NotHttp,
            Err(error) if is_timeout(&error) => Event::StaysOpen,
            Err(_) => Event::Reset,
        };
        client.set_patience(PATIENCE);
        self.events.push(event);
    }

    /// The connection is of no more use.
    fn fail(&mut self, event: Event) {
        self.leave();
        self.events.push(event);
    }
}

type Read = fn(&mut Client) -> Result<Message, ReadError>;

fn event_of(error: &ReadError) -> Event {
    match error {
        ReadError::Closed => Event::Closed,
        ReadError::CutShort(_) => Event::Cut,
        ReadError::NotHttp(_) => Event::NotHttp,
        ReadError::Failed(error) if is_timeout(error) => Event::Silence,
        ReadError::Failed(_) => Event::Reset,
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn says_close(response: &Message) -> bool {
    response.fields.all("connection").iter().any(|value| value.to_ascii_lowercase().contains("close"))
}
