//! Goal: many gateways admit what one would, and never more than the limit is in use. Method: random
//! losses, delays and members against the account of what each gateway may use; and gateways with a queue
//! and a service, in virtual time.

mod account;
mod gateways;
mod learned;
