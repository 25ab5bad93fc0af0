# Two convolutional networks that learn from each other: one draws digits from random numbers, the other tells them from handwritten ones.
param noise = 32            # random numbers that a digit is drawn from
param width = 8             # channels of the finest maps
param lr    = 1e-3 in 0..1  # learning rate

fn draw(z) {
  h  = relu(layer_norm(linear(z, 4 * width * 49)))
  h2 = relu(conv_transpose2d(reshape(h, [4 * width, 7, 7]), 2 * width, 4, stride = 2, padding = 1))
  return sigmoid(conv_transpose2d(h2, 1, 4, stride = 2, padding = 1))
}

fn judge(x) {
  h  = leaky_relu(conv2d(2 * x - 1, width, 4, stride = 2, padding = 1), slope = 0.2)
  h2 = leaky_relu(conv2d(h, 2 * width, 4, stride = 2, padding = 1), slope = 0.2)
  return linear(dropout(flatten(h2), 0.3), 1)
}

data {
  train = idx("mnist/train-images-idx3-ubyte")
  test  = idx("mnist/t10k-images-idx3-ubyte")
  image : u8[28, 28]
}

model {
  layer discriminator(x) = judge(x)
  generator = draw(random_normal([noise], in_evaluation = true))
  real      = discriminator(reshape(image / 255, [1, 28, 28]))
  fake      = discriminator(generator)
  fooling   = mean(bce(fake, 1, from_logits = true))
  telling   = (mean(bce(real, 1, from_logits = true)) + mean(bce(fake, 0, from_logits = true))) / 2
  told      = (mean(real > 0) + mean(fake < 0)) / 2
  ink       = mean(generator)  # of a drawn digit; a written one has 0.13
}

train {
  loss      = fooling
  metric    = [telling, told, ink]
  predict   = generator
  optimizer = [
      adam(lr, beta1 = 0.5, weights = "generator.*", every = 2),
      adam(lr, beta1 = 0.5, weights = "discriminator.*", loss = telling, every = 2, at = 1),
  ]
  batch  = 64
  epochs = 2
}
