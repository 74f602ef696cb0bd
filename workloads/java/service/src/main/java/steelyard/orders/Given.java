// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * What the rows are made from.
 *
 * @param seed seed of every value in the rows
 * @param rows number of orders that are there before the first request
 */
@ConfigurationProperties("steelyard")
public record Given(@DefaultValue("1") long seed, @DefaultValue("10000") int rows) {
    public Given {
        if (rows < 1 || rows > 10_000_000) {
            throw new IllegalArgumentException("steelyard.rows is " + rows + "; allowed: 1 to 10000000");
        }
    }
}
