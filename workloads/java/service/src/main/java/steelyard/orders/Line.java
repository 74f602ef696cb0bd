// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Index;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.SequenceGenerator;
import jakarta.persistence.Table;

/** A line of an order: so much of one item. */
@Entity
@Table(name = "order_line", indexes = @Index(name = "line_of_order", columnList = "order_id"))
public class Line {
    @Id
    @GeneratedValue(strategy = GenerationType.SEQUENCE, generator = "line_id")
    @SequenceGenerator(name = "line_id", allocationSize = 200)
    private Long id;

    @ManyToOne(fetch = FetchType.LAZY, optional = false)
    private Order order;

    private int number;

    @ManyToOne(fetch = FetchType.LAZY, optional = false)
    private Item item;

    private int quantity;

    protected Line() {}

    Line(Order order, int number, Item item, int quantity) {
        this.order = order;
        this.number = number;
        this.item = item;
        this.quantity = quantity;
    }

    public Item getItem() {
        return item;
    }

    public int getQuantity() {
        return quantity;
    }
}
