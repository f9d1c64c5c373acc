"""The certificate authority of the test's internet, and the contexts of its servers."""
import datetime
import os
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

NOW = datetime.datetime.utcnow()
DAY = datetime.timedelta(days=1)


def _name(text):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


class Authority:
    def __init__(self, name="Test internet's authority"):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = _name(name)
        identifier = x509.SubjectKeyIdentifier.from_public_key(self.key.public_key())
        self.cert = (x509.CertificateBuilder().subject_name(self.name).issuer_name(self.name)
                     .public_key(self.key.public_key()).serial_number(x509.random_serial_number())
                     .not_valid_before(NOW - DAY).not_valid_after(NOW + 30 * DAY)
                     .add_extension(x509.BasicConstraints(True, 0), True)
                     .add_extension(x509.KeyUsage(True, False, False, False, False, True, True, False, False), True)
                     .add_extension(identifier, False)
                     .sign(self.key, hashes.SHA256()))

    def leaf(self, path, names, start=NOW - DAY, end=NOW + 7 * DAY):
        """Certificate and key in one PEM file."""
        key = ec.generate_private_key(ec.SECP256R1())
        cert = (x509.CertificateBuilder().subject_name(_name(names[0])).issuer_name(self.name)
                .public_key(key.public_key()).serial_number(x509.random_serial_number())
                .not_valid_before(start).not_valid_after(end)
                .add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), False)
                .add_extension(x509.BasicConstraints(False, None), True)
                .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), False)
                .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), False)
                .sign(self.key, hashes.SHA256()))
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), "wb") as f:
            f.write(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                                      serialization.NoEncryption()))
            f.write(cert.public_bytes(serialization.Encoding.PEM))
        return path

    def write(self, path):
        with open(path, "wb") as f:
            f.write(self.cert.public_bytes(serialization.Encoding.PEM))
        os.chmod(path, 0o644)


def contexts(place, ca_path, names):
    """name of the server -> context; None is for all that are not named."""
    authority = Authority()
    authority.write(ca_path)

    def context(path, alpn=("h2", "http/1.1")):
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        c.load_cert_chain(path)
        c.set_alpn_protocols(list(alpn))
        return c

    at = os.path.join(place, "tls")
    os.mkdir(at)
    good = authority.leaf(at + "/good.pem", names)
    found = {None: context(good), "h1only.example.com": context(good, ["http/1.1"]),
             "expired.example.com": context(authority.leaf(at + "/expired.pem", ["expired.example.com"], NOW - 9 * DAY, NOW - DAY)),
             "wrongname.example.com": context(authority.leaf(at + "/wrong.pem", ["somebody-else.example.com"])),
             "selfsigned.example.com": context(Authority("Nobody").leaf(at + "/self.pem", ["selfsigned.example.com"]))}
    mtls = context(good)
    mtls.verify_mode = ssl.CERT_REQUIRED
    mtls.load_verify_locations(ca_path)
    found["mtls.example.com"] = mtls
    authority.leaf(at + "/client.pem", ["a-client.example.com"])
    return found
