// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import java.util.List;
import java.util.Optional;
import org.springframework.data.domain.Limit;
import org.springframework.data.jpa.repository.EntityGraph;
import org.springframework.data.jpa.repository.JpaRepository;

/** The orders. */
public interface Orders extends JpaRepository<Order, Long> {
    /** An order with its lines. */
    @EntityGraph(attributePaths = "lines")
    Optional<Order> findWithLinesById(long id);

    /** Orders of a customer, newest first. */
    List<Order> findByCustomerOrderByIdDesc(int customer, Limit limit);
}
