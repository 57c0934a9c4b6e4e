import CSystemd

extension BusLink {
    func subscribe(_ subscriber: Subscriber, to match: BusMatch) {
        checkThread()
        let text = match.rule
        if let rule = rules[text] {
            rule.subscribers.append(subscriber)
            subscriber.onState(rule.subscriptionState)
            return
        }
        let rule = Rule(match, initialState)
        rule.subscribers = [subscriber]
        rules[text] = rule
        if let name = match.wellKnownSender {
            owners[name, default: Owner()].uses += 1
            if isReady, owners[name]?.uses == 1 { follow(name) }
        }
        subscriber.onState(rule.subscriptionState)
        if isReady { install(text) }
    }

    func unsubscribe(_ subscriber: Subscriber, from match: BusMatch) {
        checkThread()
        let text = match.rule
        guard let rule = rules[text], let index = rule.subscribers.firstIndex(where: { $0 === subscriber }) else {
            return  // cancelled, and then released
        }
        rule.subscribers.remove(at: index)
        guard rule.subscribers.isEmpty else { return }
        rules[text] = nil
        if isReady { queryDaemon("RemoveMatch", text) { _ in } }
        guard let name = match.wellKnownSender else { return }
        owners[name]?.uses -= 1
        if owners[name]?.uses == 0 {
            owners[name] = nil
            if isReady { queryDaemon("RemoveMatch", Self.ownerMatch(name).rule) { _ in } }
        }
    }

    /// Follows the owner of a name. The bus replies in order: when it has confirmed a rule that was requested after
    /// this, the owner is known.
    func follow(_ name: String) {
        owners[name]?.error = nil
        queryDaemon("AddMatch", Self.ownerMatch(name).rule) { [weak self] answer in
            if case .failure(let error) = answer { self?.owners[name]?.error = error.description }
        }
        queryDaemon("GetNameOwner", name) { [weak self] answer in
            switch answer {
            case .success(let values):
                guard case .string(let owner)? = values.first else { return }
                self?.owners[name]?.uniqueName = owner
            case .failure: self?.owners[name]?.uniqueName = nil  // it has no owner
            }
        }
    }

    func install(_ text: String) {
        guard let rule = rules[text] else { return }
        queryDaemon("AddMatch", text) { [weak self, weak rule] answer in
            guard let self, let rule, self.rules[text] === rule else { return }
            if case .failure(let error) = answer {
                self.set(.refused(reason: error.description), of: rule)
            } else if let name = rule.match.wellKnownSender {
                self.notify(rule, of: self.owners[name])
            } else {
                self.set(.active(sender: nil), of: rule)
            }
        }
    }

    private func notify(_ rule: Rule, of owner: Owner?) {
        if let error = owner?.error {
            set(.refused(reason: error), of: rule)
        } else {
            set(.active(sender: owner?.uniqueName), of: rule)
        }
    }

    private static func ownerMatch(_ name: String) -> BusMatch {
        BusMatch(
            valid: BusName.daemon, path: "/org/freedesktop/DBus", interface: BusName.daemon,
            member: "NameOwnerChanged", firstArgument: name)
    }

    private func queryDaemon(
        _ member: String, _ argument: String, _ reply: @escaping (Result<[BusValue], BusError>) -> Void
    ) {
        let request = Request(
            destination: BusName.daemon, path: "/org/freedesktop/DBus", interface: BusName.daemon, member: member,
            arguments: [.string(argument)], timeout: .seconds(25))
        send(request, isOwn: true, reply)
    }

    // MARK: Signals

    func dispatch(_ message: BusMessage) {
        let sender = message.sender
        if sender == BusName.daemon, message.member == "NameOwnerChanged" { ownerChanged(message) }
        var receivers: [(Rule, Subscriber)] = []
        for rule in rules.values where message.agrees(with: rule.match) {
            guard isFrom(sender, rule.match) else {
                for subscriber in rule.subscribers { subscriber.onOtherSender() }
                continue
            }
            for subscriber in rule.subscribers { receivers.append((rule, subscriber)) }
        }
        for (rule, subscriber) in receivers where rule.subscribers.contains(where: { $0 === subscriber }) {
            subscriber.handler(message)
        }
    }

    private func isFrom(_ sender: String, _ match: BusMatch) -> Bool {
        if let name = match.wellKnownSender { return owners[name]?.uniqueName == sender }
        return match.sender == nil || match.sender == sender
    }

    private func ownerChanged(_ message: BusMessage) {
        guard let arguments = message.arguments, arguments.count == 3, case .string(let name) = arguments[0],
            case .string(let new) = arguments[2], owners[name] != nil
        else { return }
        owners[name]?.uniqueName = new.isEmpty ? nil : new
        for rule in rules.values.map({ $0 }) where rule.match.wellKnownSender == name {
            if case .active = rule.subscriptionState { notify(rule, of: owners[name]) }
        }
    }
}
