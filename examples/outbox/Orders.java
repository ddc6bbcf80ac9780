// An order and the job that closes it, in one transaction: the outbox (docs/mysql.md), with plain JDBC.
//
// A-1 is paid in time: the payment and the cancel of the job are one transaction. A-2 is not paid, and its job is
// delivered. A-3 is rolled back: it leaves neither an order nor a job.
//
//   java -cp /usr/share/java/mariadb-java-client.jar examples/outbox/Orders.java
//
// MYSQL_HOST, MYSQL_PORT, MYSQL_USER, MYSQL_PASSWORD and MYSQL_DATABASE name the database, where `tocsin mysql migrate`
// has made the outbox. The server runs with --outbox-url for it; TOCSIN_SERVER names it, for the consumer.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;

public class Orders {
  private static final long DELAY_MS = 1_500;
  private static final String TOPIC = "example.outbox-java." + ProcessHandle.current().pid() + "-" + System.nanoTime();
  private static final String JOBS = env("TOCSIN_SERVER", "http://127.0.0.1:7420") + "/v1/topics/" + TOPIC;

  public static void main(String[] arguments) throws Exception {
    String url = "jdbc:mariadb://" + env("MYSQL_HOST", "127.0.0.1") + ":" + env("MYSQL_PORT", "3306") + "/"
        + env("MYSQL_DATABASE", "shop");
    try (Connection connection = DriverManager.getConnection(url, env("MYSQL_USER", "root"), env("MYSQL_PASSWORD", ""))) {
      run(connection, "CREATE TABLE example_java_orders (id VARCHAR(64) PRIMARY KEY, state VARCHAR(16)) ENGINE=InnoDB");
      try {
        work(connection);
      } finally {
        connection.setAutoCommit(true);
        run(connection, "DROP TABLE example_java_orders");
      }
    }
  }

  private static void work(Connection connection) throws Exception {
    connection.setAutoCommit(false);
    place(connection, "A-1");
    place(connection, "A-2");
    connection.commit();
    System.out.println("A-1 and A-2 are placed");

    place(connection, "A-3");
    connection.rollback();
    System.out.println("A-3 is rolled back");

    pay(connection, "A-1");
    connection.commit();
    System.out.println("A-1 is paid");

    String delivered = send("POST", "/reserve", "{\"wait_ms\":20000}");
    expect(delivered, "\"payload\":\"close A-2\"");
    System.out.println("delivered: close A-2");
    expect(send("POST", "/reserve", "{\"wait_ms\":500}"), "\"jobs\":[]");
    System.out.println("nothing else is delivered");
    send("DELETE", "", "");
  }

  private static void place(Connection connection, String order) throws SQLException {
    run(connection, "INSERT INTO example_java_orders (id, state) VALUES (?, 'open')", order);
    run(connection, "INSERT INTO tocsin_outbox (topic, job_id, payload, delay_ms) VALUES (?, ?, ?, ?)", TOPIC, order,
        "close " + order, DELAY_MS);
  }

  private static void pay(Connection connection, String order) throws SQLException {
    run(connection, "UPDATE example_java_orders SET state = 'paid' WHERE id = ? AND state = 'open'", order);
    run(connection, "INSERT INTO tocsin_outbox (op, topic, job_id) VALUES ('cancel', ?, ?)", TOPIC, order);
  }

  private static void run(Connection connection, String sql, Object... values) throws SQLException {
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      for (int i = 0; i < values.length; ++i) {
        statement.setObject(i + 1, values[i]);
      }
      statement.executeUpdate();
    }
  }

  private static String send(String method, String path, String body) throws Exception {
    HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(JOBS + path))
        .method(method, HttpRequest.BodyPublishers.ofString(body)).header("Content-Type", "application/json");
    String token = env("TOCSIN_TOKEN", "");
    if (!token.isEmpty()) {
      request.header("Authorization", "Bearer " + token);
    }
    HttpResponse<String> answer = HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofString());
    if (answer.statusCode() >= 400) {
      throw new IllegalStateException(method + " " + JOBS + path + ": " + answer.statusCode() + " " + answer.body());
    }
    return answer.body();
  }

  private static void expect(String answer, String part) {
    if (!answer.contains(part)) {
      throw new IllegalStateException("expected " + part + " in " + answer);
    }
  }

  private static String env(String name, String fallback) {
    return System.getenv().getOrDefault(name, fallback);
  }
}
