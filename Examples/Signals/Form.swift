public import FreshetSignals

/// A form whose fields are checked while the user types; a server checks one of them.
public struct Form: Sendable {
    /// The data to send.
    public struct Account: Sendable, Equatable {
        public var name: String
        public var password: String
    }

    /// The fields; the user interface sets them.
    public let name = CurrentValue("")
    public let password = CurrentValue("")
    public let repetition = CurrentValue("")

    let isFree: @Sendable (_ name: String) async throws -> Bool

    /// - Parameter isFree: Asks the server whether a name is free.
    public init(isFree: @escaping @Sendable (_ name: String) async throws -> Bool) {
        self.isFree = isFree
    }

    /// The account if all fields are valid; otherwise nil.
    public func account(
        quiet: Duration = .milliseconds(300), clock: some Clock<Duration> = ContinuousClock()
    ) -> some AsyncSequence<Account?, Never> & Sendable {
        combineLatest(checkedName(quiet, clock), checkedPassword)
            .map { name, password in
                guard let name, let password else { return nil }
                return Account(name: name, password: password)
            }
            .removeDuplicates()
    }

    /// Nil after each change, until the name has not changed for a while and is known to be free.
    func checkedName(_ quiet: Duration, _ clock: some Clock<Duration>) -> some AsyncSequence<String?, Never> & Sendable
    {
        name
            .removeDuplicates()
            .map { name in
                Emitter<String?, any Error>.once {
                    guard name.count >= 3 else { return nil }
                    try await clock.sleep(for: quiet)
                    return try await isFree(name) ? name : nil
                }
                .replaceError(with: nil)
                .prepend(nil)
            }
            .switchToLatest()
    }

    var checkedPassword: some AsyncSequence<String?, Never> & Sendable {
        combineLatest(password, repetition).map { $0 == $1 && $0.count >= 8 ? $0 : nil }
    }
}
