//! Feedback end to end in virtual time: senders with gapping, an overloaded node with ladder and sentry,
//! messages that get lost.
//!
//! Bars are those of the design (225 % offered, goodput 0.97 of the capacity, refusals at the node 1 % of
//! what is offered, shares within 5 %, rates within 10 %, recovery within 3 s). Each test runs ten seeds on
//! which nothing was tuned and asks all of them; `--nocapture` shows the worst.

mod chain;
mod cold;
mod overload;
mod plant;
mod turnover;
