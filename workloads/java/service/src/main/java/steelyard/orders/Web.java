// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The service over HTTP. */
@RestController
public class Web {
    /** What is to become of an order. */
    public record Change(Order.State state) {}

    private final Shop shop;
    private final Readiness readiness;

    public Web(Shop shop, Readiness readiness) {
        this.shop = shop;
        this.readiness = readiness;
    }

    @PostMapping("/orders")
    public ResponseEntity<Shop.ShownOrder> create(@RequestBody Shop.AskedOrder asked) {
        return shop.create(asked)
                .map(order -> ResponseEntity.status(HttpStatus.CREATED).body(order))
                .orElse(ResponseEntity.badRequest().build());
    }

    @GetMapping("/orders/{id}")
    public ResponseEntity<Shop.ShownOrder> read(@PathVariable long id) {
        return ResponseEntity.of(shop.read(id));
    }

    @PutMapping("/orders/{id}")
    public ResponseEntity<Shop.ShownOrder> update(@PathVariable long id, @RequestBody Change change) {
        if (change.state() == null) {
            return ResponseEntity.badRequest().build();
        }
        return ResponseEntity.of(shop.update(id, change.state()));
    }

    @GetMapping("/orders")
    public List<Shop.ListedOrder> list(
            @RequestParam int customer, @RequestParam(defaultValue = "20") int limit) {
        return shop.list(customer, limit);
    }

    /** 200 with the versions of everything once all rows are there; 503 until then. */
    @GetMapping("/ready")
    public ResponseEntity<Map<String, Object>> ready() {
        Optional<Map<String, Object>> facts = readiness.facts();
        return facts.map(ResponseEntity::ok).orElse(ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE).build());
    }
}
