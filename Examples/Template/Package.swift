// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "template",
    dependencies: [
        .package(name: "freshet", path: "../..")
    ],
    targets: [
        .executableTarget(
            name: "Template",
            dependencies: [
                .product(name: "FreshetSignals", package: "freshet"),
                .product(name: "FreshetSystemSignals", package: "freshet"),
            ])
    ],
    swiftLanguageModes: [.v6]
)
