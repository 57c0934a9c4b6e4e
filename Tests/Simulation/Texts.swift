import FreshetPipelines
import WorldTestSupport

/// A pipeline's file: its own URL, and further lines.
///
/// - Parameter pages: the text beside the URL, with a comma before it.
func pipeline(
    _ name: String, _ refresh: String = "", url: String? = nil, pages: String = "", check: String = ""
) -> String {
    """
    source: {url: "\(url ?? "https://\(name).example.com/data")"\(pages)}
    refresh: {\(refresh)}
    check: {\(check)}
    cache: {file: \(name)}

    """
}

extension Machine {
    /// The origin of a pipeline of ``pipeline(_:_:url:pages:check:)``.
    func origin(_ name: String) -> ScriptedOrigin { place.internet["https://\(name).example.com/data"] }
}

/// An answer of an origin that is down.
func down(retryAfter: Duration? = nil) -> ScriptedOrigin.Answer {
    .fails(RunFailure(.transient, "503", retryAfter: retryAfter))
}

let good = ScriptedOrigin.Answer.content("good")
