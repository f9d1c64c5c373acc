import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;

/** An HTTP client in Java. usage: java Fetch METHOD URL [BODY] */
public class Fetch {
	public static void main(String[] args) throws Exception {
		long begun = System.nanoTime();
		HttpClient client = HttpClient.newBuilder().connectTimeout(Duration.ofSeconds(15)).build();
		begun = System.nanoTime();
		HttpRequest.BodyPublisher body = args.length > 2 ? HttpRequest.BodyPublishers.ofString(args[2])
			: HttpRequest.BodyPublishers.noBody();
		HttpRequest request = HttpRequest.newBuilder(URI.create(args[1])).method(args[0], body).build();
		try {
			HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
			System.out.print(answer.body());
			if (answer.statusCode() >= 400) {
				System.err.println("status " + answer.statusCode() + " after " + (System.nanoTime() - begun) / 1e6 + " ms");
				System.exit(22);
			}
		} catch (java.io.IOException e) {
			Throwable cause = e;
			while (cause.getCause() != null)
				cause = cause.getCause();
			System.err.println(e + " " + cause);
			System.err.println("after " + (System.nanoTime() - begun) / 1e6 + " ms");
			System.exit(1);
		}
	}
}
