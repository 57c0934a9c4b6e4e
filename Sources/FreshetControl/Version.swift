/// The version of the daemon, of its tools and of the user agent.
package enum Version {
    package static let current = "0.1.0"
}
