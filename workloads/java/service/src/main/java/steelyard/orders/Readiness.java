// SPDX-License-Identifier: Apache-2.0
package steelyard.orders;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.sql.Connection;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import javax.sql.DataSource;
import org.apache.catalina.util.ServerInfo;
import org.hibernate.Version;
import org.springframework.boot.SpringBootVersion;
import org.springframework.boot.context.event.ApplicationReadyEvent;
import org.springframework.boot.web.context.WebServerInitializedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;

/** Knows when all rows are there, and says so once, with the versions of everything. */
@Component
public class Readiness {
    private final DataSource source;
    private final Given given;
    private final ObjectMapper json;
    private volatile Map<String, Object> facts;
    private volatile int port;

    public Readiness(DataSource source, Given given, ObjectMapper json) {
        this.source = source;
        this.given = given;
        this.json = json;
    }

    /** Versions and rows, once the service is ready. */
    public Optional<Map<String, Object>> facts() {
        return Optional.ofNullable(facts);
    }

    @EventListener
    public void listening(WebServerInitializedEvent event) {
        port = event.getWebServer().getPort();
    }

    @EventListener
    public void ready(ApplicationReadyEvent event) throws Exception {
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("Spring Boot", SpringBootVersion.getVersion());
        found.put("Hibernate", Version.getVersionString());
        found.put("Tomcat", ServerInfo.getServerNumber());
        found.put("JDK", System.getProperty("java.vm.version") + " (" + System.getProperty("java.vm.name") + ")");
        try (Connection connection = source.getConnection()) {
            found.put("PostgreSQL", connection.getMetaData().getDatabaseProductVersion());
            found.put("PostgreSQL JDBC", connection.getMetaData().getDriverVersion());
        }
        found.put("rows", given.rows());
        found.put("port", port);
        facts = found;
        // Whoever has started the service reads this line: it says where it listens.
        System.out.println("steelyard ready " + json.writeValueAsString(found));
    }
}
