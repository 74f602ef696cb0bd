//! What is asked for, a function of the seed and the number of the request.

use std::fmt::Write as _;

use rand_core::Rng;
use serde_json::json;

use crate::orders::drawn::{Drawn, Line, mix};
use crate::schedule::generator;

/// An operation of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// `POST /orders`.
    Create,
    /// `GET /orders/ID`.
    Read,
    /// `PUT /orders/ID`.
    Update,
    /// `GET /orders?customer=ID`.
    List,
}

impl Operation {
    /// Every operation with its name; its place is its number in the records.
    pub(super) const ALL: [(Self, &'static str); 4] =
        [(Self::Create, "create"), (Self::Read, "read"), (Self::Update, "update"), (Self::List, "list")];
}

/// What an order may become.
const STATES: [&str; 4] = ["NEW", "PAID", "SHIPPED", "DELIVERED"];
/// How many orders are listed.
pub(super) const LISTED: u64 = 20;

const OPERATIONS: u64 = 0x7374_6561_6d33;
const TARGETS: u64 = 0x7374_6561_6d34;
const CHOICES: u64 = 0x7374_6561_6d35;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// A new order.
    Create {
        /// Who orders.
        customer: u64,
        /// What.
        lines: Vec<Line>,
    },
    /// An order that was there at the begin.
    Read {
        /// Its number.
        order: u64,
    },
    /// A change of an order that was there at the begin.
    Update {
        /// Its number.
        order: u64,
        /// What it becomes.
        state: &'static str,
    },
    /// The newest orders of a customer.
    List {
        /// Whose.
        customer: u64,
    },
}

/// Draws the operation of every request.
pub(super) fn draw_operations(seed: u64, mix: [f64; 4], count: usize) -> Vec<u32> {
    let mut stream = generator(seed, OPERATIONS);
    // The last one that occurs takes what rounding leaves.
    let last = mix.iter().rposition(|share| *share > 0.0).unwrap_or(0);
    let one = |_| {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
        let mut rest = (stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut place = 0;
        while place < last && rest >= mix[place] {
            rest -= mix[place];
            place += 1;
        }
        u32::try_from(place).unwrap_or(0)
    };
    (0..count).map(one).collect()
}

impl Request {
    /// The request of a number.
    pub(super) fn draw(drawn: Drawn, operation: Operation, index: usize) -> Self {
        let number = |stream: u64, bound: u64| mix(mix(drawn.seed ^ stream) ^ index as u64) % bound;
        match operation {
            Operation::Create => Self::Create {
                customer: 1 + number(TARGETS, drawn.customers()),
                // Of a number beyond all rows.
                lines: drawn.lines(drawn.rows + 1 + index as u64),
            },
            Operation::Read => Self::Read { order: 1 + number(TARGETS, drawn.rows) },
            Operation::Update => Self::Update {
                order: 1 + number(TARGETS, drawn.rows),
                state: STATES[usize::try_from(number(CHOICES, STATES.len() as u64)).unwrap_or(0)],
            },
            Operation::List => Self::List { customer: 1 + number(TARGETS, drawn.customers()) },
        }
    }

    /// As it is sent.
    pub(super) fn bytes(&self, host: &str) -> Vec<u8> {
        let (start, body) = match self {
            Self::Create { customer, lines } => {
                let lines: Vec<_> =
                    lines.iter().map(|line| json!({"item": line.item, "quantity": line.quantity})).collect();
                ("POST /orders".to_owned(), Some(json!({"customer": customer, "lines": lines})))
            }
            Self::Read { order } => (format!("GET /orders/{order}"), None),
            Self::Update { order, state } => (format!("PUT /orders/{order}"), Some(json!({"state": state}))),
            Self::List { customer } => (format!("GET /orders?customer={customer}&limit={LISTED}"), None),
        };
        let mut text = format!("{start} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n");
        // Writing to a string cannot fail.
        let _ = match body.map(|body| body.to_string()) {
            None => write!(text, "\r\n"),
            Some(body) => {
                write!(text, "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            }
        };
        text.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DRAWN: Drawn = Drawn { seed: 5, rows: 1000 };

    #[test]
    fn operations_occur_as_the_mix_says() {
        let count = 40_000;
        let drawn = draw_operations(3, [0.1, 0.6, 0.3, 0.0], count);
        let share = |operation: u32| {
            let found = drawn.iter().filter(|each| **each == operation).count();
            f64::from(u32::try_from(found).unwrap()) / 40_000.0
        };
        // Five standard deviations of a share of 0.6 of 40000 are 0.013.
        for (operation, expected) in [(0, 0.1), (1, 0.6), (2, 0.3)] {
            assert!((share(operation) - expected).abs() < 0.013, "{operation} {}", share(operation));
        }
        assert!(!drawn.contains(&3), "what has no share never occurs");
        assert_eq!(drawn, draw_operations(3, [0.1, 0.6, 0.3, 0.0], count));
        assert_ne!(drawn, draw_operations(4, [0.1, 0.6, 0.3, 0.0], count));
    }

    #[test]
    fn requests_are_written_as_http() {
        let text = |request: Request| String::from_utf8(request.bytes("host:1")).unwrap();
        let read = text(Request::Read { order: 7 });
        assert_eq!(read, "GET /orders/7 HTTP/1.1\r\nHost: host:1\r\nAccept: application/json\r\n\r\n");
        let update = text(Request::Update { order: 7, state: "PAID" });
        assert!(update.starts_with("PUT /orders/7 HTTP/1.1\r\n"), "{update}");
        assert!(update.ends_with("Content-Length: 16\r\n\r\n{\"state\":\"PAID\"}"), "{update}");
        let lines = vec![Line { item: 2, quantity: 3 }];
        let create = text(Request::Create { customer: 4, lines });
        assert!(create.ends_with(r#"{"customer":4,"lines":[{"item":2,"quantity":3}]}"#), "{create}");
    }

    proptest! {
        #[test]
        fn requests_ask_for_what_is_there(index in 0_usize..1_000_000) {
            for (operation, _) in Operation::ALL {
                let request = Request::draw(DRAWN, operation, index);
                prop_assert_eq!(&request, &Request::draw(DRAWN, operation, index));
                match request {
                    Request::Read { order } | Request::Update { order, .. } => {
                        prop_assert!((1..=1000).contains(&order));
                    }
                    Request::List { customer } => prop_assert!((1..=100).contains(&customer)),
                    Request::Create { customer, lines } => {
                        prop_assert!((1..=100).contains(&customer));
                        prop_assert!((1..=4).contains(&lines.len()));
                    }
                }
            }
        }
    }
}
