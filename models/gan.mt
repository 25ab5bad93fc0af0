# Two networks that learn from each other: a generator draws digits, a discriminator tells them from handwritten ones.
param noise = 64            # random numbers that a digit is drawn from
param lr    = 2e-4 in 0..1  # learning rate

fn generate(z) {
  h  = leaky_relu(linear(z, 256), slope = 0.2)
  h2 = leaky_relu(layer_norm(linear(h, 256)), slope = 0.2)
  return sigmoid(linear(h2, 784))
}

fn discriminate(x) {
  h  = dropout(leaky_relu(linear(2 * x - 1, 256), slope = 0.2), 0.3)
  h2 = dropout(leaky_relu(linear(h, 256), slope = 0.2), 0.3)
  return linear(h2, 1)
}

data {
  train = idx("mnist/train-images-idx3-ubyte")
  test  = idx("mnist/t10k-images-idx3-ubyte")
  image : u8[28, 28]
}

model {
  layer discriminator(x) = discriminate(x)
  generator = generate(random_normal([noise], in_evaluation = true))
  real      = discriminator(flatten(image) / 255)
  fake      = discriminator(generator)
  fooling   = mean(bce(fake, 1, from_logits = true))
  telling   = (mean(bce(real, 1, from_logits = true)) + mean(bce(fake, 0, from_logits = true))) / 2
  told      = (mean(real > 0) + mean(fake < 0)) / 2
}

train {
  loss      = fooling
  metric    = [telling, told]
  predict   = generator
  optimizer = [
      adam(lr, beta1 = 0.5, weights = "generator.*"),
      adam(lr, beta1 = 0.5, weights = "discriminator.*", loss = telling),
  ]
  batch  = 128
  epochs = 20
}
