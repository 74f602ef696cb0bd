// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import jakarta.persistence.Entity;
import jakarta.persistence.Id;

/** Something that can be ordered, and how much of it is in stock. */
@Entity
public class Item {
    @Id
    private long id;

    private String name;
    private int priceCents;
    private long stock;

    protected Item() {}

    Item(long id, int priceCents, long stock) {
        this.id = id;
        this.name = "item " + id;
        this.priceCents = priceCents;
        this.stock = stock;
    }

    public long getId() {
        return id;
    }

    public String getName() {
        return name;
    }

    public int getPriceCents() {
        return priceCents;
    }

    public long getStock() {
        return stock;
    }
}
