// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import jakarta.persistence.CascadeType;
import jakarta.persistence.Entity;
import jakarta.persistence.EnumType;
import jakarta.persistence.Enumerated;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.OneToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;
import java.util.ArrayList;
import java.util.List;

/** An order of a customer. */
@Entity
@Table(name = "orders", indexes = @Index(name = "orders_of_customer", columnList = "customer, id"))
public class Order {
    /** What became of an order. */
    public enum State { NEW, PAID, SHIPPED, DELIVERED }

    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "orders_id")
    @SequenceGenerator(name = "orders_id", allocationSize = 50)
    private Long id;

    private int customer;

    @Enumerated(EnumType.STRING)
    private State state = State.NEW;

    private long totalCents;

    @OneToMany(mappedBy = "order", cascade = CascadeType.PERSIST)
    @OrderBy("number")
    private List<Line> lines = new ArrayList<>();

    protected Order() {}

    Order(int customer) {
        this.customer = customer;
    }

    void add(Item item, int quantity) {
        lines.add(new Line(this, lines.size(), item, quantity));
        totalCents += (long) item.getPriceCents() * quantity;
    }

    void setState(State state) {
        this.state = state;
    }

    public Long getId() {
        return id;
    }

    public int getCustomer() {
        return customer;
    }

    public State getState() {
        return state;
    }

    public long getTotalCents() {
        return totalCents;
    }

    public List<Line> getLines() {
        return lines;
    }
}
