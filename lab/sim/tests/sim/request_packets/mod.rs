//! Goal: the request level over packets is the request level, with a network that has limits. Method: the
//! same crowds over a delay and over packets, and small runs with a known answer. The checkers run after
//! every step of all of them.

mod people;
mod router;
mod tools;
mod wrong_networks;
