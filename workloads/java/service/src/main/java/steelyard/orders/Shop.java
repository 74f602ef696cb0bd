// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import org.springframework.data.domain.Limit;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** The four operations, one transaction each. */
@Service
public class Shop {
    /** What a customer asks for. */
    public record AskedLine(long item, int quantity) {}

    /** A new order as it is asked for. */
    public record AskedOrder(int customer, List<AskedLine> lines) {}

    /** An order as it is answered. */
    public record ShownOrder(long id, int customer, Order.State state, long totalCents, List<AskedLine> lines) {}

    /** An order in a list. */
    public record ListedOrder(long id, int customer, Order.State state, long totalCents) {}

    private static final int MOST_LINES = 100;
    private static final int MOST_LISTED = 100;
    private static final int MOST_QUANTITY = 1000;

    private final Orders orders;
    private final Items items;

    public Shop(Orders orders, Items items) {
        this.orders = orders;
        this.items = items;
    }

    /** Makes an order and takes its items out of the stock; empty where something is asked for that is not there. */
    @Transactional
    public Optional<ShownOrder> create(AskedOrder asked) {
        if (asked.lines() == null || asked.lines().isEmpty() || asked.lines().size() > MOST_LINES) {
            return Optional.empty();
        }
        Order order = new Order(asked.customer());
        for (AskedLine line : asked.lines()) {
            Optional<Item> item = items.findById(line.item());
            if (item.isEmpty() || line.quantity() < 1 || line.quantity() > MOST_QUANTITY) {
                return Optional.empty();
            }
            order.add(item.get(), line.quantity());
        }
        orders.save(order);
        // Rows are locked in one order everywhere: two orders never wait for each other.
        asked.lines().stream().sorted(Comparator.comparingLong(AskedLine::item))
                .forEach(line -> items.take(line.item(), line.quantity()));
        return Optional.of(shown(order));
    }

    /** Gives an order. */
    @Transactional(readOnly = true)
    public Optional<ShownOrder> read(long id) {
        return orders.findWithLinesById(id).map(Shop::shown);
    }

    /** Changes what became of an order. */
    @Transactional
    public Optional<ShownOrder> update(long id, Order.State state) {
        return orders.findWithLinesById(id).map(order -> {
            order.setState(state);
            return shown(order);
        });
    }

    /** Gives the newest orders of a customer. */
    @Transactional(readOnly = true)
    public List<ListedOrder> list(int customer, int limit) {
        int most = Math.max(1, Math.min(limit, MOST_LISTED));
        return orders.findByCustomerOrderByIdDesc(customer, Limit.of(most)).stream()
                .map(each -> new ListedOrder(each.getId(), each.getCustomer(), each.getState(), each.getTotalCents()))
                .toList();
    }

    private static ShownOrder shown(Order order) {
        List<AskedLine> lines = order.getLines().stream()
                .map(line -> new AskedLine(line.getItem().getId(), line.getQuantity()))
                .toList();
        return new ShownOrder(
                order.getId(), order.getCustomer(), order.getState(), order.getTotalCents(), lines);
    }
}
