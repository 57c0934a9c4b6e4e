import CCurl
package import FreshetPipelines

/// libcurl, which the process loads when it is first needed. A daemon without requests, and the helper processes, never
/// load its 40 libraries.
///
/// Its functions may be called on any thread.
package enum CurlLibrary {
    /// The remedy if the library is missing.
    private static let remedy = "install libcurl 7.87 or newer (Debian: apt install libcurl4)"

    /// Whether the library is loaded. Never blocks.
    static var isLoaded: Bool { freshet_curl_is_loaded() }

    /// Loads and initializes the library; nothing happens if it is loaded. The first call blocks on the library's files:
    /// do not call it on the loop.
    ///
    /// - Returns: why it cannot be loaded; the next call tries again. Nil: it is loaded.
    @discardableResult
    package static func load() -> RunFailure? {
        guard let reason = freshet_curl_problem() else { return nil }
        return RunFailure(.local, "libcurl cannot be loaded; \(remedy): \(String(cString: reason))")
    }
}
