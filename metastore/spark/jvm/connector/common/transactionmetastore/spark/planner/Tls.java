package transactionmetastore.spark.planner;

import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;
import org.apache.hadoop.conf.Configuration;

/**
 * The TLS settings for calls to a planner: metastore/client/tls.py.
 *
 * The settings of the session's Hive client apply. Two more are ours, since that client lacks them: the caller's own
 * certificate, and whether the host's name is checked. Files may be PEM, PKCS12 or JKS, several with "," between
 * them; the content shows the format. If a trust store is named, no other authority is trusted.
 */
record Tls(String trusted, String trustedPassword, String own, String ownPassword, boolean isNameVerified) {
    static final String TRUSTED = "hive.metastore.truststore.path", OWN = "metastore.client.keystore.path";
    private static final Pattern PEM = Pattern.compile("-----BEGIN ([A-Z0-9 ]+)-----([^-]+)-----END \\1-----");

    static Tls of(Configuration settings) {
        return new Tls(settings.get(TRUSTED, ""), password(settings, "hive.metastore.truststore.password"),
            settings.get(OWN, ""), password(settings, "metastore.client.keystore.password"),
            settings.getBoolean("metastore.client.ssl.verify.hostname", true));
    }

    /** Returns a password. It may be in one of Hadoop's credential providers. */
    private static String password(Configuration settings, String key) {
        try {
            char[] found = settings.getPassword(key);
            return found == null ? "" : new String(found);
        } catch (IOException error) {
            throw new AcidException("InvalidInputError", key + " cannot be read: " + error.getMessage(), error);
        }
    }

    /**
     * Returns the settings to check after a failed handshake. The server does not always give a reason before the
     * connection breaks.
     */
    String hint() {
        return "spark.hadoop." + TRUSTED + " is what this Spark trusts (" + (trusted.isBlank() ? "not set" : trusted)
            + "), spark.hadoop." + OWN + " what it shows where the planner wants a certificate ("
            + (own.isBlank() ? "not set" : own) + ").";
    }

    /** Returns the TLS context, from the files in their present state. */
    SSLContext context() {
        try {
            SSLContext context = SSLContext.getInstance("TLS");
            KeyManagerFactory keys = null;
            if (!own.isBlank()) {
                keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
                keys.init(read(OWN, own, ownPassword), ownPassword.toCharArray());
            }
            TrustManagerFactory authorities = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            authorities.init(trusted.isBlank() ? null : read(TRUSTED, trusted, trustedPassword));
            context.init(keys == null ? null : keys.getKeyManagers(), trusting(authorities.getTrustManagers()), null);
            return context;
        } catch (GeneralSecurityException error) {
            throw new AcidException("InvalidInputError", "TLS cannot be used with " + OWN + " = " + own + " and " + TRUSTED + " = "
                + trusted + ": " + error.getMessage(), error);
        }
    }

    private TrustManager[] trusting(TrustManager[] managers) {
        if (isNameVerified) return managers;
        return Stream.of(managers).map(one -> one instanceof X509ExtendedTrustManager whole ? new OfAnyName(whole) : one)
            .toArray(TrustManager[]::new);
    }

    private static KeyStore read(String key, String paths, String password) throws GeneralSecurityException {
        KeyStore all = KeyStore.getInstance(KeyStore.getDefaultType());
        List<Certificate> certificates = new ArrayList<>();
        byte[] privateKey = null;
        String path = paths;
        try {
            all.load(null, null);
            for (String one : paths.split(",")) {
                path = one.strip();
                byte[] content = Files.readAllBytes(Path.of(path));
                String text = new String(content, StandardCharsets.ISO_8859_1);
                if (!text.contains("-----BEGIN ")) {
                    copy(KeyStore.getInstance(new File(path), password.toCharArray()), all, password);
                    continue;
                }
                for (Matcher block = PEM.matcher(text); block.find();) {
                    byte[] bytes = Base64.getMimeDecoder().decode(block.group(2));
                    switch (block.group(1)) {
                        case "CERTIFICATE" -> certificates.add(
                            CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(bytes)));
                        case "PRIVATE KEY" -> privateKey = bytes;
                        default -> { }
                    }
                }
            }
        } catch (IOException | GeneralSecurityException error) {
            throw new AcidException("InvalidInputError", key + ": " + path + " cannot be read as PEM, PKCS12 or JKS: "
                + error.getMessage(), error);
        }
        for (Certificate one : certificates) all.setCertificateEntry("certificate " + all.size(), one);
        if (key.equals(OWN)) addOwn(all, paths, certificates, privateKey, password);
        return all;
    }

    private static void addOwn(KeyStore all, String paths, List<Certificate> chain, byte[] key, String password)
            throws GeneralSecurityException {
        if (key != null && !chain.isEmpty()) {
            String algorithm = chain.get(0).getPublicKey().getAlgorithm();
            PrivateKey made = KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(key));
            all.setKeyEntry("own", made, password.toCharArray(), chain.toArray(new Certificate[0]));
        }
        for (var names = all.aliases(); names.hasMoreElements();) if (all.isKeyEntry(names.nextElement())) return;
        throw new AcidException("InvalidInputError", OWN + ": " + paths + " holds no private key with its certificate that can be "
            + "used: PEM has one in PKCS8 (BEGIN PRIVATE KEY), without a password.");
    }

    private static void copy(KeyStore from, KeyStore to, String password) throws GeneralSecurityException {
        for (var names = from.aliases(); names.hasMoreElements();) {
            String name = names.nextElement(), free = name + " " + to.size();
            if (from.isKeyEntry(name)) {
                to.setKeyEntry(free, from.getKey(name, password.toCharArray()), password.toCharArray(), from.getCertificateChain(name));
            } else {
                to.setCertificateEntry(free, from.getCertificate(name));
            }
        }
    }

    /**
     * A trust manager that accepts a trusted certificate for any host name. Java checks host names itself only for a plain
     * trust manager.
     */
    private static final class OfAnyName extends X509ExtendedTrustManager {
        private final X509ExtendedTrustManager authorities;

        OfAnyName(X509ExtendedTrustManager authorities) {
            this.authorities = authorities;
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
            authorities.checkServerTrusted(chain, type);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
            authorities.checkServerTrusted(chain, type);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
            authorities.checkServerTrusted(chain, type);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
            authorities.checkClientTrusted(chain, type);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
            authorities.checkClientTrusted(chain, type);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
            authorities.checkClientTrusted(chain, type);
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return authorities.getAcceptedIssuers();
        }
    }
}
