import ArgumentParser
import FreshetControl

struct LogLevelVerb: Verb {
    static let configuration = CommandConfiguration(
        commandName: "log-level",
        abstract: "Show or change the log level of the daemon.",
        discussion: """
            Levels are critical, error, warning, notice, info, debug and trace; the names and numbers of 'systemctl \
            log-level' are accepted too. A change takes effect immediately and lasts until the daemon ends. To make it \
            permanent, start freshetd with --log-level.

            Examples:
              freshetctl log-level
              freshetctl log-level debug
              freshetctl log-level info
            """)

    @Argument(help: "The least urgent level to log; without it, print the level.")
    var level: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard let level, LogLevel(name: level) == nil else { return }
        let meant = NameSuggestion.closest(to: level, among: LogLevel.names).map { "; did you mean '\($0)'?" }
        throw ValidationError("'\(level)' is not a log level\(meant ?? ".")")
    }

    func run(_ session: Session) throws(CommandFailure) {
        let client = try session.connect()
        if let level = level.flatMap(LogLevel.init(name:)) {
            let former = try session.callDaemon { () throws(ControlClient.Failure) in
                let former = try client.logLevel()
                try client.setLogLevel(level)
                return former
            }
            if options.json { return session.print(json: ControlMessage.Level(level: level)) }
            return session.message(
                former == level
                    ? "nothing changed: the log level is \(level.rawValue) already"
                    : "the log level is \(level.rawValue) until the daemon ends; it was \(former.rawValue)")
        }
        let level = try session.callDaemon { () throws(ControlClient.Failure) in try client.logLevel() }
        if options.json { return session.print(json: ControlMessage.Level(level: level)) }
        session.print(level.rawValue)
    }
}
