# A good classifier of CIFAR-10 as fast as is known, by the method of Keller Jordan's airbench: eight epochs of a small network whose
# first layer is made of the data, with Muon for its filters. An image is judged by six views of it.
param width     = 64                # filters of the first block; the others have four times as many
param lr        = 0.24 in 0..10     # learning rate of the filters
param head_lr   = 1340.0 in 0..1e5  # of the last layer, whose scores are divided
param bias_lr   = 106.0 in 0..1e5   # of the biases
param decay     = 4e-3 in 0..1      # of both
param smoothing = 0.2 in 0..1       # of the labels
param examples  = 2000              # of a batch

data {
  train = cifar10("cifar10/cifar-10-batches-bin", "train")
  test  = cifar10("cifar10/cifar-10-batches-bin", "test")
  image : u8[3, 32, 32]
  label : class[10]
}

fn block(x, out) {
  conv1 = conv2d(x, out, 3, padding = 1, bias = false, init = dirac())
  norm1 = batch_norm(max_pool(conv1, 2), momentum = 0.4, eps = 1e-12)
  conv2 = conv2d(gelu(norm1), out, 3, padding = 1, bias = false, init = dirac())
  norm2 = batch_norm(conv2, momentum = 0.4, eps = 1e-12)
  return gelu(norm2)
}

fn network(x, like) {
  whiten = gelu(whiten(x, like, 2))
  block1 = block(whiten, width)
  block2 = block(block1, 4 * width)
  block3 = block(block2, 4 * width)
  head   = linear(flatten(max_pool(block3, 3)), 10, bias = false, init = uniform(-sqrt(3), sqrt(3)))
  return head / (4 * width)
}

model {
  layer net(x) = network(x, image)
  seen   = random_crop(random_flip(image, alternate = true), 2, mode = "reflect")
  scores = net(seen)
  if not training() {
    padded = pad(pad(image, 1, 1, 1, mode = "reflect"), 2, 1, 1, mode = "reflect")
    scores = 0.25 * (scores + net(flip(image, axis = 2)))
    repeat i in 0..2 {
      moved  = padded[:, 2 * i:2 * i + 32, 2 * i:2 * i + 32]
      scores = scores + 0.125 * (net(moved) + net(flip(moved, axis = 2)))
    }
  }
}

train {
  loss      = cross_entropy(scores, label, label_smoothing = smoothing)
  metric    = accuracy(scores, label)
  optimizer = [
      muon(linear_lr(lr), momentum = 0.6, iterations = 3, keep_length = true, weights = "net.block*.conv*.weight"),
      sgd(linear_lr(head_lr), momentum = 0.85, nesterov = true, weight_decay = decay / head_lr, weights = "net.head.weight"),
      sgd(linear_lr(bias_lr), momentum = 0.85, nesterov = true, weight_decay = decay / bias_lr,
      weights = "net.block*.norm*.bias"),
      sgd(linear_lr(bias_lr, end = 3 * steps_per_epoch), momentum = 0.85, nesterov = true, weight_decay = decay / bias_lr,
      weights = "net.whiten.bias"),
  ]
  freeze    = "net.block*.norm*.weight"
  precision = bf16
  batch     = examples
  epochs    = 8
}
