// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import org.springframework.data.jpa.repository.JpaRepository;
import org.springframework.data.jpa.repository.Modifying;
import org.springframework.data.jpa.repository.Query;

/** The inventory. */
public interface Items extends JpaRepository<Item, Long> {
    /** What is ordered anew when too little is left. */
    long DELIVERY = 1_000_000;

    /** Takes a quantity out of the stock, and has it filled up where too little is left. */
    @Modifying
    @Query("update Item i set i.stock = i.stock - :quantity"
            + " + (case when i.stock < :quantity then " + DELIVERY + "L else 0L end) where i.id = :id")
    int take(long id, long quantity);
}
