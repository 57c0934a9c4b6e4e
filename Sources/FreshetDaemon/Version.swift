/// The version of the daemon, its tools and the user agent.
package enum Version {
    package static let current = "0.1.0"
}
