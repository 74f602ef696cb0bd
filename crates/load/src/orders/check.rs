//! Whether an answer is right.

use serde_json::Value;

use crate::orders::drawn::Drawn;
use crate::orders::request::{LISTED, Request};

/// What is wrong with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Another status than that of success.
    Status,
    /// A body that does not say what it must.
    Body,
}

/// What answers must say.
#[derive(Debug)]
pub(super) struct Expected {
    drawn: Drawn,
    /// Orders at the begin of each customer, up to the length of a list.
    listed: Vec<u8>,
}

impl Expected {
    pub(super) fn new(drawn: Drawn) -> Self {
        let mut listed = vec![0_u8; usize::try_from(drawn.customers()).unwrap_or(0) + 1];
        for order in 1..=drawn.rows {
            let count = &mut listed[usize::try_from(drawn.customer(order)).unwrap_or(0)];
            if u64::from(*count) < LISTED {
                *count += 1;
            }
        }
        Self { drawn, listed }
    }

    /// Gives what is wrong with an answer, if anything.
    pub(super) fn fault(&self, request: &Request, status: u16, body: &[u8]) -> Option<Fault> {
        let wanted = if matches!(request, Request::Create { .. }) { 201 } else { 200 };
        if status != wanted {
            return Some(Fault::Status);
        }
        let is_right = serde_json::from_slice(body).is_ok_and(|value| self.is_right(request, &value));
        (!is_right).then_some(Fault::Body)
    }

    fn is_right(&self, request: &Request, body: &Value) -> bool {
        match request {
            Request::Create { customer, lines } => {
                body["id"].as_u64().is_some_and(|id| id > self.drawn.rows)
                    && body["customer"] == *customer
                    && body["totalCents"] == self.drawn.total_cents(lines)
                    && body["state"] == "NEW"
                    && body["lines"].as_array().is_some_and(|found| found.len() == lines.len())
            }
            Request::Read { order } => self.is_order(*order, body) && body["state"].is_string(),
            Request::Update { order, state } => self.is_order(*order, body) && body["state"] == *state,
            Request::List { customer } => body.as_array().is_some_and(|found| self.is_list(*customer, found)),
        }
    }

    /// Whether a body is an order that was there at the begin.
    fn is_order(&self, order: u64, body: &Value) -> bool {
        let lines = self.drawn.lines(order);
        let is_line = |(found, line): (&Value, &crate::orders::drawn::Line)| {
            found["item"] == line.item && found["quantity"] == line.quantity
        };
        body["id"] == order
            && body["customer"] == self.drawn.customer(order)
            && body["totalCents"] == self.drawn.total_cents(&lines)
            && body["lines"]
                .as_array()
                .is_some_and(|found| found.len() == lines.len() && found.iter().zip(&lines).all(is_line))
    }

    /// Whether a body lists orders of a customer, newest first, none of the first ones left out.
    fn is_list(&self, customer: u64, found: &[Value]) -> bool {
        let least = usize::try_from(customer).ok().and_then(|place| self.listed.get(place));
        let ids: Option<Vec<u64>> = found.iter().map(|order| order["id"].as_u64()).collect();
        ids.is_some_and(|ids| ids.windows(2).all(|pair| pair[0] > pair[1]))
            && found.iter().all(|order| order["customer"] == customer)
            && found.len() as u64 <= LISTED
            && least.is_some_and(|least| found.len() >= usize::from(*least))
    }
}

/// A right answer to a request for an order, for servers of tests.
#[cfg(test)]
pub(super) fn order_text(drawn: Drawn, order: u64) -> String {
    let lines = drawn.lines(order);
    let shown: Value =
        lines.iter().map(|line| serde_json::json!({"item": line.item, "quantity": line.quantity})).collect();
    serde_json::json!({
        "id": order, "customer": drawn.customer(order), "state": "NEW",
        "totalCents": drawn.total_cents(&lines), "lines": shown,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DRAWN: Drawn = Drawn { seed: 7, rows: 2000 };

    fn order() -> Value {
        json!({"id": 17, "customer": 93, "state": "PAID", "totalCents": 6204, "lines": [{"item": 813, "quantity": 4}]})
    }

    fn fault(request: &Request, status: u16, body: &Value) -> Option<Fault> {
        Expected::new(DRAWN).fault(request, status, body.to_string().as_bytes())
    }

    #[test]
    fn a_right_answer_has_no_fault_and_any_other_value_is_one() {
        let read = Request::Read { order: 17 };
        assert_eq!(fault(&read, 200, &order()), None);
        assert_eq!(fault(&Request::Update { order: 17, state: "PAID" }, 200, &order()), None);
        assert_eq!(fault(&Request::Update { order: 17, state: "NEW" }, 200, &order()), Some(Fault::Body));
        assert_eq!(fault(&read, 404, &order()), Some(Fault::Status));
        for (key, value) in [("id", json!(18)), ("customer", json!(94)), ("totalCents", json!(1))] {
            let mut wrong = order();
            wrong[key] = value;
            assert_eq!(fault(&read, 200, &wrong), Some(Fault::Body), "{key}");
        }
        let mut wrong = order();
        wrong["lines"][0]["quantity"] = json!(5);
        assert_eq!(fault(&read, 200, &wrong), Some(Fault::Body));
        assert_eq!(Expected::new(DRAWN).fault(&read, 200, b"{"), Some(Fault::Body));
    }

    #[test]
    fn a_new_order_must_be_new_and_cost_what_its_lines_cost() {
        let lines = vec![crate::orders::drawn::Line { item: 5, quantity: 2 }];
        let create = Request::Create { customer: 3, lines };
        let mut body = json!({"id": 2001, "customer": 3, "state": "NEW", "totalCents": 3992, "lines": [{}]});
        assert_eq!(fault(&create, 201, &body), None);
        assert_eq!(fault(&create, 200, &body), Some(Fault::Status));
        body["id"] = json!(2000);
        assert_eq!(fault(&create, 201, &body), Some(Fault::Body));
    }

    #[test]
    fn a_list_holds_at_least_the_orders_of_the_begin() {
        let customer = DRAWN.customer(17);
        let mut ids: Vec<u64> = (1..=2000).rev().filter(|order| DRAWN.customer(*order) == customer).collect();
        ids.truncate(20);
        let body =
            |ids: &[u64]| -> Value { ids.iter().map(|id| json!({"id": id, "customer": customer})).collect() };
        let list = Request::List { customer };
        assert_eq!(fault(&list, 200, &body(&ids)), None);
        assert_eq!(fault(&list, 200, &body(&ids[1..])), Some(Fault::Body), "one is left out");
        let swapped: Vec<u64> = ids.iter().rev().copied().collect();
        assert_eq!(fault(&list, 200, &body(&swapped)), Some(Fault::Body), "oldest first");
    }
}
