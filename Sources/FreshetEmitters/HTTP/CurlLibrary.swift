import CCurl
import FreshetPipelines

/// libcurl, which the process loads when it is first needed. A daemon without requests, and the helper processes, never
/// load its 40 libraries.
///
/// Its functions may be called on any thread.
package enum CurlLibrary {
    /// The remedy if the library is missing.
    static let remedy = "install libcurl 7.87 or newer (Debian: apt install libcurl4)"

    /// Loads and initializes the library; nothing happens if it is loaded. The first call takes some milliseconds. A
    /// failure is that of each request (``failure``).
    package static func load() { _ = failure }

    /// Why there are no handles: the library cannot be loaded; nil: it is loaded, so the process is out of memory if
    /// libcurl makes no handle.
    static let failure: RunFailure? = {
        if let reason = freshet_curl_problem() {
            return RunFailure(.local, "libcurl cannot be loaded; \(remedy): \(String(cString: reason))")
        }
        // The call is thread-safe since 7.84, and counted. It is never undone, because other parts of the process may
        // use libcurl and libcrypto too.
        curl_global_init(Int(CURL_GLOBAL_SSL))
        return nil
    }()
}
