// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;

/** A service of orders: HTTP and JSON in front, rows in PostgreSQL behind. */
@SpringBootApplication
@ConfigurationPropertiesScan
public class Service {
    public static void main(String[] words) {
        SpringApplication.run(Service.class, words);
    }
}
