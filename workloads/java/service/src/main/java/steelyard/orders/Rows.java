// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import jakarta.persistence.EntityManager;
import org.springframework.boot.ApplicationArguments;
import org.springframework.boot.ApplicationRunner;
import org.springframework.stereotype.Component;
import org.springframework.transaction.support.TransactionTemplate;

/** Makes the rows that are there before the first request. */
@Component
public class Rows implements ApplicationRunner {
    private static final int BATCH = 500;

    private final EntityManager manager;
    private final TransactionTemplate transaction;
    private final Drawn drawn;
    private final int rows;

    public Rows(EntityManager manager, TransactionTemplate transaction, Drawn drawn, Given given) {
        this.manager = manager;
        this.transaction = transaction;
        this.drawn = drawn;
        this.rows = given.rows();
    }

    @Override
    public void run(ApplicationArguments words) {
        transaction.executeWithoutResult(status -> {
            for (long id = 1; id <= Drawn.ITEMS; id++) {
                manager.persist(new Item(id, drawn.priceCents(id), Items.DELIVERY));
            }
        });
        for (int first = 1; first <= rows; first += BATCH) {
            int begin = first;
            transaction.executeWithoutResult(status -> {
                for (int id = begin; id < begin + BATCH && id <= rows; id++) {
                    insert(id);
                }
                manager.flush();
                manager.clear();
            });
        }
    }

    private void insert(long id) {
        Order order = new Order(drawn.customer(id));
        for (int line = 0; line < drawn.lines(id); line++) {
            // An instance that is in no session: its price is known, and the row is only referred to.
            long item = drawn.item(id, line);
            order.add(new Item(item, drawn.priceCents(item), 0), drawn.quantity(id, line));
        }
        manager.persist(order);
        if (order.getId() != id) {
            throw new IllegalStateException("order " + id + " was given the number " + order.getId());
        }
    }
}
